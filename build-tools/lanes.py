"""Run commands side by side, a given number at a time; a free lane starts the next command.

    build-tools/lanes.py 2 "make one" "make other" "make third"

The first command prints as it runs. The output of each other one follows at the end; until then it
is in target/lanes. The exit status is 1 if a command fails.
"""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

LOGS = Path(__file__).resolve().parents[1] / "target" / "lanes"


def run(command: str, log: Path | None) -> bool:
    """Whether the command succeeds; prints how long it took."""
    begin = time.monotonic()
    if log is None:
        status = subprocess.call(command, shell=True)
    else:
        with log.open("wb") as output:
            status = subprocess.call(command, shell=True, stdout=output, stderr=output)
    print(f"{time.monotonic() - begin:.0f} s, status {status}: {command}", flush=True)
    return status == 0


def main(lanes: int, commands: list[str]) -> int:
    """Run all commands, also after one that fails."""
    LOGS.mkdir(parents=True, exist_ok=True)
    logs = [None, *(LOGS / f"{n}.log" for n in range(1, len(commands)))]
    with ThreadPoolExecutor(lanes) as pool:
        done = list(pool.map(run, commands, logs))
    for log in filter(None, logs):
        sys.stdout.write(log.read_text(encoding="utf-8", errors="replace"))
    return 0 if all(done) else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
