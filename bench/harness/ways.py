"""Runs of one script with the extension on and off, each in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

WAYS = ("on", "off")

_MARK = "RESULT "
_MEMORY = ("OutOfMemoryError", "UNABLE_TO_ACQUIRE_MEMORY")


def answer(found: dict[str, Any]) -> None:
    """Print the result of this process for `in_a_process`."""
    print(_MARK + json.dumps(found), flush=True)


def in_a_process(script: str, *arguments: str, timeout: float) -> dict[str, Any]:
    """Run a script. "outcome" is "done", or says how it ended."""
    command = [sys.executable, script, *arguments]
    begin = time.monotonic()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            out, errors = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return {"outcome": f"not done after {timeout:.0f} s"}
    for line in out.splitlines():
        if line.startswith(_MARK):
            return {"outcome": "done", **json.loads(line[len(_MARK) :])}
    known = [error for error in _MEMORY if error in out + errors]
    outcome = known[0] if known else f"failed: {errors.strip()[-300:]}"
    return {"outcome": outcome, "seconds": round(time.monotonic() - begin, 1)}
