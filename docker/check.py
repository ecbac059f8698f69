"""Does the image work? Its steps outside a container, for machines that cannot build images.

`make docker-check` copies into a new folder what the Dockerfile copies, runs its `pip install`
there in an environment of its own, starts the commands of compose.yaml, and runs the notebooks.
Left out is what needs root: the image's packages and its user. Ports are those of compose.yaml, so
they must be free.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
DOCKERFILE = ROOT / "docker" / "Dockerfile"
COMPOSE = ROOT / "docker" / "compose.yaml"
NEEDS_ROOT = ("apt-get", "useradd")
# Seconds until a service has to be ready.
WAIT = 180


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile, without those of the stage that is only copied from."""
    lines = [line for line in DOCKERFILE.read_text("utf-8").splitlines() if line.strip()]
    found = [line.split(maxsplit=1) for line in lines if not line.startswith("#")]
    last = max(i for i, (name, _) in enumerate(found) if name == "FROM")
    return [(name, rest) for name, rest in found[last + 1 :]]


def copy(folder: Path, wheels: str) -> None:
    """Carry out each COPY into the working directory; an error if a file is not there."""
    for name, rest in instructions():
        if name == "COPY" and not rest.startswith("--from="):
            for pattern in rest.replace("${WHEELS}", wheels).split()[:-1]:
                there = list(ROOT.glob(pattern))
                if not there:
                    sys.exit(f"No {pattern}: `make release` makes it, python/dist's `make wheel`")
                for file in there:
                    shutil.copy(file, folder)


def run_steps(folder: Path, env: dict[str, str]) -> None:
    """Carry out each RUN that does not need root."""
    for name, rest in instructions():
        if name == "RUN" and not rest.startswith(NEEDS_ROOT):
            print("RUN", rest, flush=True)
            subprocess.run(rest, shell=True, cwd=folder, env=env, check=True)


def on_this_machine(text: str) -> str:
    """A text of compose.yaml whose services are all on this machine."""
    return re.sub(r"//server\b", "//localhost", text).replace("0.0.0.0", "127.0.0.1")


@contextmanager
def started(
    service: dict[str, Any], folder: Path, env: dict[str, str], ready: Callable[[], bool]
) -> Iterator[None]:
    """Run a service's command while the body runs, which begins when it is ready."""
    command = shlex.split(on_this_machine(service["command"]))
    if command[0] == "jupyter" and os.geteuid() == 0:
        # The image has a user for it.
        command.append("--allow-root")
    print("START", *command, flush=True)
    process = subprocess.Popen(command, cwd=folder, env=env)
    try:
        end = time.monotonic() + WAIT
        while not ready():
            if process.poll() is not None or time.monotonic() > end:
                sys.exit(f"{command[0]} is not ready after {WAIT} s, or has ended")
            time.sleep(1)
        yield
    finally:
        process.terminate()
        process.wait(60)


def fetched(address: str) -> str:
    """A page, or nothing as long as nobody serves it."""
    try:
        with urllib.request.urlopen(address, timeout=10) as page:
            return page.read().decode()
    except OSError:
        return ""


def run_notebook(name: str, folder: Path, env: dict[str, str]) -> str:
    """Run all cells, and give what they printed; an error in a cell is an error here."""
    command = ["jupyter", "nbconvert", "--to", "notebook", "--execute", "--stdout", name]
    print("RUN", *command, flush=True)
    done = subprocess.run(command, cwd=folder, env=env, check=True, stdout=subprocess.PIPE)
    outputs = [o for cell in json.loads(done.stdout)["cells"] for o in cell.get("outputs", [])]
    return "".join("".join(o["text"]) for o in outputs if o.get("name") == "stdout")


def expect(condition: bool, what: str, said: str) -> None:
    """Say what was found, and stop where it is not as it should be."""
    if not condition:
        sys.exit(f"Not so: {what}. What was printed:\n{said}")
    print("YES", what, flush=True)


def check(folder: Path, wheels: str) -> None:
    """All steps."""
    app = folder / "app"
    app.mkdir()
    copy(app, wheels)
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    foreign = ("SPARK", "PYSPARK", "PYTHONPATH", "VIRTUAL_ENV")
    env = {k: v for k, v in os.environ.items() if not k.startswith(foreign)}
    env |= {"PATH": f"{folder / 'venv' / 'bin'}:{env['PATH']}", "JUPYTER_PLATFORM_DIRS": "1"}
    run_steps(app, env)
    services = yaml.safe_load(COMPOSE.read_text("utf-8"))["services"]
    healthy = services["server"]["healthcheck"]["test"]
    quiet = {"cwd": app, "env": env, "stderr": subprocess.DEVNULL}
    with started(
        services["server"],
        app,
        env,
        lambda: not subprocess.run(shlex.split(healthy), **quiet).returncode,
    ):
        settings = services["notebook"]["environment"].items()
        client = env | {name: on_this_machine(value) for name, value in settings}
        with started(
            services["notebook"],
            app,
            client,
            lambda: "version" in fetched("http://localhost:8888/api"),
        ):
            said = run_notebook("connect.ipynb", app, client)
            expect("has skewext: True" in said, "connect.ipynb runs on the server", said)
            said = run_notebook("databricks_check.ipynb", app, client)
            results = [line[:4].strip() for line in said.splitlines()]
            all_work = "yes" in results and "NO" not in results
            expect(all_work, "all of databricks_check.ipynb works", said)
            page = fetched("http://localhost:4040/skewext/")
            expect("/skewext/query/?id=" in page, "the UI has the tab, with the joins", page)


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wheels", default="target/release", help="where the wheel is")
    wheels = parser.parse_args().wheels
    with tempfile.TemporaryDirectory() as folder:
        check(Path(folder), wheels)


if __name__ == "__main__":
    main()
