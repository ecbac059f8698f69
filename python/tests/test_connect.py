"""Spark Connect: the same functions through a local server, with the extension and without.

Each server takes some seconds to start, so it is for `make test-line` and `make test-all`.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest
from amount import TEST_ALL

import pyspark_skewext as skewext

pytest.importorskip("grpc")
pytestmark = [
    pytest.mark.skipif(pyspark.__version__.startswith("3."), reason="needs the client of Spark 4"),
    pytest.mark.skipif(
        not (TEST_ALL or os.environ.get("SKEWEXT_TEST_LINE") == "1"), reason="takes long"
    ),
]

SCRIPTS = Path(__file__).parent / "connect"
PYTHON_FOLDER = Path(__file__).parents[1]
LINE = ".".join(pyspark.__version__.split(".")[:2])
# Has pyspark-client alone, which has no JVM; `make` makes it.
CLIENT = PYTHON_FOLDER.parent / f".venv-client-{LINE}" / "bin" / "python"


def without_spark() -> dict[str, str]:
    """The environment with nothing of Spark's but how fast the JVM is: see conftest."""
    left = "SPARK_SUBMIT_OPTS"
    return {k: v for k, v in os.environ.items() if k == left or not k.startswith("SPARK")}


def run(python: str, script: str, *arguments: str) -> None:
    """In a process of its own: this one has a classic session."""
    done = subprocess.run(
        [python, str(SCRIPTS / script), *arguments],
        env={**without_spark(), "PYTHONPATH": str(PYTHON_FOLDER)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-5000:]
    assert done.stdout.splitlines()[-1:] == ["all as it should be"], done.stdout


@contextmanager
def server(folder: Path, *settings: str) -> Iterator[str]:
    """Start one, and give its address when it listens."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    settings = (
        *settings,
        f"spark.connect.grpc.binding.port={port}",
        f"spark.sql.warehouse.dir={folder / 'warehouse'}",
        "spark.ui.enabled=false",
    )
    command = [str(Path(sys.executable).with_name("spark-submit")), "--master", "local[2]"]
    command += [word for setting in settings for word in ("--conf", setting)]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    log = folder / "server.log"
    with log.open("w") as said:
        process = subprocess.Popen(
            [*command, "spark-internal"], cwd=folder, env=without_spark(), stdout=said, stderr=said
        )
        try:
            end = time.monotonic() + 120
            while not listens(port):
                assert process.poll() is None and time.monotonic() < end, log.read_text()[-5000:]
                time.sleep(0.2)
            yield f"sc://localhost:{port}"
        finally:
            process.terminate()
            process.wait(60)


def listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("localhost", port)) == 0


def test_a_server_that_pyspark_starts() -> None:
    run(sys.executable, "with_extension.py")


def test_a_server_with_the_extension(tmp_path: Path) -> None:
    extension = "spark.sql.extensions=io.github.skewext.SkewExtensions"
    with server(tmp_path, extension, f"spark.jars={skewext.jar_path()}") as address:
        run(str(CLIENT) if CLIENT.exists() else sys.executable, "with_extension.py", address)


def test_a_server_without() -> None:
    run(sys.executable, "without_extension.py")
