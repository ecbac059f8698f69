"""What the reliability results say, as tables in docs/reliability.md."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.tables import table

BENCH = Path(__file__).resolve().parents[1]
PAGE = BENCH.parent / "docs" / "reliability.md"

RIGHT, WRONG = "right", "wrong"
ENDS = (RIGHT, "failed", WRONG)
WAYS = ("on", "off")

Found = dict[str, Any]


def blocks() -> dict[str, str]:
    """By the tool that measured them; without those that were not."""
    return {
        tool: make(json.loads(path.read_text(encoding="utf-8")))
        for tool, (name, make) in _MAKERS.items()
        if (path := BENCH / "results" / name).exists()
    }


# A cluster that breaks


def faults_block(found: Found) -> str:
    """By case, by fault, and what was fetched."""
    return "\n\n".join(
        [
            f"Measured on {_where(found)}.",
            by(found, lambda run: (run["case"], run["inputs"]), ["case", "inputs"]),
            by(found, lambda run: (run["fault"],), ["fault"]),
            fetched(found),
        ]
    )


def by(found: Found, key: Callable[[Found], tuple[str, ...]], names: list[str]) -> str:
    """How runs ended, with the extension and without; a fault that came too late is no trial."""
    done = [run for run in found["runs"] if run["on_happened"]]
    groups: dict[tuple[str, ...], list[Found]] = {}
    for run in done:
        groups.setdefault(key(run), []).append(run)
    rows = [[*names, "runs", *ENDS, *(f"stock: {end}" for end in ENDS)]]
    for group, runs in [*sorted(groups.items()), (("all", "")[: len(names)], done)]:
        rows.append([*group, str(len(runs)), *_ends(runs, "on"), *_ends(runs, "off")])
    return table(rows)


def _ends(runs: list[Found], way: str) -> list[str]:
    ends = Counter(run[way] if run[way] in (RIGHT, WRONG) else "failed" for run in runs)
    return [str(ends[end]) for end in ENDS]


def fetched(found: Found) -> str:
    """Bytes of shuffles that tasks read where nothing failed."""
    rows = [["case", "inputs", "fetched, KB", "stock", "ratio", "of the other host, KB", "stock"]]
    for case, by_inputs in sorted(found["fetched"].items()):
        for inputs, ways in sorted(by_inputs.items()):
            on, off = (ways[way]["local"] + ways[way]["remote"] for way in WAYS)
            far = [f"{ways[way]['remote'] / 1e3:.0f}" for way in WAYS]
            ratio = f"{on / off:.2f}" if off else "-"
            rows.append([case, inputs, f"{on / 1e3:.0f}", f"{off / 1e3:.0f}", ratio, *far])
    return table(rows)


# Small heaps


def memory_block(found: Found) -> str:
    """Outcome, what the process held, and what was spilled."""
    heads = ["outcome", "s", "resident, MB", "spilled, MB"]
    rows = [["case", "heap", *heads, *(f"stock: {head}" for head in heads)]]
    for name, case in found["cases"].items():
        rows.append([name, case["heap"], *_taken(case["on"]), *_taken(case["off"])])
    return f"Measured on {_where(found)}.\n\n{table(rows)}"


def _taken(run: Found) -> list[str]:
    figures = [run.get(key) for key in ("seconds", "resident_mb", "spilled_mb")]
    return [run["outcome"], *("" if figure is None else f"{figure:g}" for figure in figures)]


# The driver


def driver_block(found: Found) -> str:
    """Tasks, files, and a session that goes on and on."""
    made = [f"Measured on {_where(found, 'nothing else ran')}."]
    if "tasks" in found:
        ways = found["tasks"]
        about = f"{ways['on']['maps']:,} map tasks of each of two inputs"
        turns = "Two sessions each, in turns; the lesser of both."
        made.append(f"**Tasks**: {about}, {ways['on']['partitions']:,} partitions. {turns}")
        made.append(_beside(ways, _TASKS))
    if "files" in found:
        ways = found["files"]
        made.append(f"**Files**: a join of two tables with {ways['on']['files']:,} bucket files.")
        made.append(_beside(ways, _FILES))
    if "soak" in found:
        ways = found["soak"]
        made.append(f"**Soak**: {ways['on']['joins']:,} joins in a session, of five kinds.")
        rows = [["", "after a tenth", "after all", "stock: after a tenth", "after all"]]
        for key, name in _SOAK.items():
            figures = [f"{ways[way][when][key]:g}" for way in WAYS for when in ("first", "last")]
            rows.append([name, *figures])
        seconds = (f"{ways[way]['seconds']:g}" for way in WAYS)
        rows.append(["seconds", "", next(seconds), "", next(seconds)])
        made.append(table(rows))
    return "\n\n".join(made)


_TASKS = {
    "seconds": "the first join, s",
    "again_seconds": "the same again, twice, s at best",
    "heap_before_mb": "heap before, MB",
    "heap_after_mb": "heap after, MB",
    "peak_mb": "heap at most, MB",
    "event_log_mb": "event log, MB",
}
_FILES = {
    "first_seconds": "plan, the first time, s",
    "again_seconds": "plan, again, s",
    "heap_mb": "heap, MB",
}
_SOAK = {"heap_mb": "heap, MB", "threads": "threads", "blocks": "blocks", "files": "files"}


def _beside(ways: Found, names: dict[str, str]) -> str:
    rows = [["", "with the extension", "stock"]]
    for key, name in names.items():
        rows.append([name, *(f"{ways[way][key]:g}" for way in WAYS)])
    return table(rows)


def _where(found: Found, load: str = "other work ran beside it") -> str:
    machine = found["machine"]
    about = f"{machine['cores']} cores, {machine['memory_gb']:g} GB, PySpark {machine['pyspark']}"
    return f"{found['date']} ({about}; {load})"


_MAKERS: dict[str, tuple[str, Callable[[Found], str]]] = {
    "faults.py": ("reliability-faults.json", faults_block),
    "memory.py": ("reliability-memory.json", memory_block),
    "endurance.py": ("reliability-driver.json", driver_block),
}
