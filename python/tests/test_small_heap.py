"""Hot keys in a heap of 512 MB, in which stock Spark's full outer join runs out of memory.

What stock Spark does there is not a test: `bench/small_heap.py` shows both.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "bench" / "small_heap.py"


@pytest.mark.parametrize(
    ("case", "hot"),
    [("3,000,000 x 1 x 1", (3_000_000, 1, 1)), ("20,000 x 200 x 1", (20_000, 200, 1))],
)
def test_hot_key_in_a_small_heap(case: str, hot: tuple[int, ...]) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--case", case, "--only", "ours"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SCRIPT.parents[1] / "python")},
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    (line,) = (x for x in done.stdout.splitlines() if x.startswith("RESULT "))
    sums = json.loads(line[len("RESULT ") :])["sums"]
    product = hot[0] * hot[1] * hot[2]
    # Cold ids are rows..rows+999, shifted by 1,000: which inputs share them follows from `hot`.
    cold = [set(range(rows + 1000, rows + 2000)) for rows in hot]
    assert sums[0] == product + len(set().union(*cold))
    for i, rows in enumerate(hot):
        hot_sum = rows * (rows - 1) // 2 * (product // rows)
        assert sums[1 + i] == hot_sum + sum(key - 1000 for key in cold[i])
