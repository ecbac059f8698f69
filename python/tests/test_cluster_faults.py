"""Some runs of bench/faults.py: right answers while executors are killed and files deleted.

The cluster itself goes away after a failure.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from amount import TEST_ALL
from harness.standalone import Standalone

ROOT = Path(__file__).resolve().parents[2]
needs_proc = pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks at /proc")


def groups_of(directory: Path) -> set[int]:
    """Process groups of the processes that run in the directory."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").resolve().is_relative_to(directory):
                found.add(os.getpgid(int(process.name)))
        except (OSError, ValueError):
            continue
    return found


@pytest.mark.slow
@needs_proc
def test_the_cluster_stops_after_a_failure(tmp_path: Path) -> None:
    directory = tmp_path.resolve() / "cluster"

    def fail() -> None:
        with Standalone(directory, "512m") as cluster:
            cluster.add_worker()
            groups = groups_of(directory)
            assert len(groups) == 2
            assert os.getpgrp() not in groups
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert groups_of(directory) == set()


@pytest.mark.skipif(not TEST_ALL, reason="a cluster of its own takes minutes")
@needs_proc
def test_answers_while_a_cluster_breaks(tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    command = [sys.executable, str(ROOT / "bench" / "faults.py"), "--runs", "6", "--seed", "11"]
    done = subprocess.run(
        [*command, "--results", str(results)], capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    runs = json.loads(results.read_text(encoding="utf-8"))["runs"]
    assert len(runs) == 6
    assert {run["on"] for run in runs} == {"right"}
    # It is no proof if nothing broke.
    assert sum(run["on_happened"] for run in runs) >= 3
