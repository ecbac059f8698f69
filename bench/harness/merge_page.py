"""What merge.json says, as a table in docs/performance.md."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

from harness.tables import table

BENCH = Path(__file__).resolve().parents[1]
PAGE = BENCH.parent / "docs" / "performance.md"
RESULTS = BENCH / "results" / "merge.json"
#: The comments around its table name it.
TOOL = "merge.py"
WAYS = ("stock", "ours")


def pages() -> dict[Path, str]:
    """The page and its table."""
    return {PAGE: block(json.loads(RESULTS.read_text(encoding="utf-8")))}


def block(found: dict[str, Any]) -> str:
    """Seconds and tasks, with the extension and without."""
    machine = found["machine"]
    about = f"{machine['cores']} cores, {machine['memory_gb']:g} GB, PySpark {machine['pyspark']}"
    rows = [["MERGE", "table", "rows", "", "s", "stock / ours", "longest / median task", "split"]]
    for name, case in found["cases"].items():
        for way in (each for each in WAYS if each in case):
            seconds, stock = (median(case[each]["seconds"]) for each in (way, "stock"))
            ratio = "" if way == "stock" else f"**{stock / seconds:.2f}**"
            clauses, kind, size = name.split("; ")
            about_rows = [clauses, kind, f"{int(size):,}", way, f"{seconds:.1f}", ratio]
            rows.append([*about_rows, _tasks(case[way]["tasks"]), _splits(case[way])])
    where = f"Measured on {found['date']} ({about}; nothing else ran):"
    return f"{where}\n\n{table(rows)}"


def _tasks(tasks: dict[str, float]) -> str:
    longest, middle = tasks["longest_ms"] / 1000, tasks["median_ms"] / 1000
    return f"{longest:.2f} / {middle:.2f} s = {tasks['ratio']:.1f}"


def _splits(run: dict[str, Any]) -> str:
    """Of how many joins partitions were split."""
    by = {"us": run["split_by_us"], "Spark": run["split_by_spark"]}
    return ", ".join(f"{n} by {name}" for name, n in by.items() if n) or "none"
