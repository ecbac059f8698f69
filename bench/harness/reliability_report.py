"""The tables of docs/reliability.md: faults, small heaps, and what the driver holds."""

from __future__ import annotations

from collections import Counter

from harness.report import Json, table, where
from harness.ways import WAYS

RIGHT, WRONG = "right", "wrong"
ENDS = (RIGHT, "failed", WRONG)


def faults(found: Json) -> str:
    """How runs ended, by case and by fault, and the bytes that were fetched."""
    done = [run for run in found["runs"] if run["on_happened"]]
    blocks = [where(found)]
    for keys in (("case", "inputs"), ("fault",)):
        groups: dict[tuple[str, ...], list[Json]] = {}
        for run in done:
            groups.setdefault(tuple(run[key] for key in keys), []).append(run)
        rows = [[*keys, "runs", *ENDS, *(f"stock: {end}" for end in ENDS)]]
        for group, runs in [*sorted(groups.items()), (("all", "")[: len(keys)], done)]:
            rows.append([*group, str(len(runs)), *_ends(runs, "on"), *_ends(runs, "off")])
        blocks.append(table(rows))
    if any("decommissioned" in run["fault"] for run in done):
        blocks.append(_again(found["runs"]))
    rows = [["case", "inputs", "fetched, KB", "stock", "ratio", "of the other host, KB", "stock"]]
    for case, by_inputs in sorted(found["fetched"].items()):
        for inputs, ways in sorted(by_inputs.items()):
            on, off = (ways[way]["local"] + ways[way]["remote"] for way in WAYS)
            far = [f"{ways[way]['remote'] / 1e3:.0f}" for way in WAYS]
            against = f"{on / off:.2f}" if off else "-"
            rows.append([case, inputs, f"{on / 1e3:.0f}", f"{off / 1e3:.0f}", against, *far])
    return "\n\n".join([*blocks, table(rows)])


def _again(runs: list[Json]) -> str:
    """Runs in which an executor left before the end, and how often a join ran again."""
    rows = [["fault", "runs", "join ran again", "stock: runs", "stock: join ran again"]]
    for fault in sorted({run["fault"] for run in runs if "decommissioned" in run["fault"]}):
        row = [fault]
        for way in WAYS:
            done = [run for run in runs if run["fault"] == fault and run[f"{way}_happened"]]
            row += [str(len(done)), str(sum("join" in run[f"{way}_again"] for run in done))]
        rows.append(row)
    return table(rows)


def _ends(runs: list[Json], way: str) -> list[str]:
    ends = Counter(run[way] if run[way] in (RIGHT, WRONG) else "failed" for run in runs)
    return [str(ends[end]) for end in ENDS]


def memory(found: Json) -> str:
    """Outcome, resident memory and spilled bytes of each case."""
    heads = ["outcome", "s", "resident, MB", "spilled, MB"]
    rows = [["case", "heap", *heads, *(f"stock: {head}" for head in heads)]]
    for name, case in found["cases"].items():
        row = [name, case["heap"]]
        for run in (case[way] for way in WAYS):
            figures = [run.get(key) for key in ("seconds", "resident_mb", "spilled_mb")]
            row += [run["outcome"], *("" if each is None else f"{each:g}" for each in figures)]
        rows.append(row)
    return f"{where(found)}\n\n{table(rows)}"


#: Of each trial of the driver: what it is, and the names of its figures.
_DRIVER = {
    "tasks": (
        "**Tasks**: {maps:,} map tasks of each of two inputs, {partitions:,} partitions. Two "
        "sessions each, in turns; the smaller figure of both.",
        {
            "seconds": "the first join, s",
            "again_seconds": "the fastest of two more, s",
            "heap_before_mb": "heap before, MB",
            "heap_after_mb": "heap after, MB",
            "peak_mb": "largest heap, MB",
            "event_log_mb": "event log, MB",
        },
    ),
    "files": (
        "**Files**: a join of two tables with {files:,} bucket files.",
        {
            "first_seconds": "plan, the first time, s",
            "again_seconds": "plan, again, s",
            "heap_mb": "heap, MB",
        },
    ),
    "soak": (
        "**Soak**: {joins:,} joins of five kinds in a session.",
        {"heap_mb": "heap, MB", "threads": "threads", "blocks": "blocks", "files": "files"},
    ),
}


def driver(found: Json) -> str:
    """Many tasks, many files, many queries."""
    blocks = [where(found, "nothing else ran")]
    for trial, (about, names) in _DRIVER.items():
        ways = found[trial]
        if trial == "soak":
            rows = [["", "after a tenth", "after all", "stock: after a tenth", "after all"]]
            whens = ("first", "last")
            for key, name in names.items():
                rows.append([name, *(f"{ways[w][when][key]:g}" for w in WAYS for when in whens)])
            on, off = (f"{ways[way]['seconds']:g}" for way in WAYS)
            rows.append(["seconds", "", on, "", off])
        else:
            rows = [["", "with the extension", "stock"]]
            rows += [[n, *(f"{ways[way][key]:g}" for way in WAYS)] for key, n in names.items()]
        blocks += [about.format(**ways["on"]), table(rows)]
    return "\n\n".join(blocks)
