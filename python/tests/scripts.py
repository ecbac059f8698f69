"""Scripts in a Python process of their own, for sessions that are not those of the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def run_script(script: str, home: Path, *arguments: str) -> str:
    """Run it in the folder, and return what it printed; fails if the script does."""
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=home,
        env={
            **os.environ,
            "PYTHONPATH": str(Path(__file__).resolve().parents[1]),
            # Executors of a local cluster keep their files here.
            "SPARK_WORKER_DIR": str(home),
        },
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
