"""Some runs of `make cluster-test`: right answers while executors are killed and files deleted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from amount import TEST_ALL

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(not TEST_ALL, reason="a cluster of its own takes a minute")
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks at /proc")
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
