"""Result files, the ratios in them, and the table that a run prints."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import date
from itertools import combinations
from math import ceil, sqrt
from pathlib import Path
from statistics import median
from typing import Any

from harness.case import Case

Json = dict[str, Any]

LEAST_ROUNDS = 6
"""Fewer rounds give no confidence interval of their median."""


def load(directory: Path) -> list[Json]:
    """The results of all cases in a directory, which other scripts use, too."""
    texts = (path.read_text(encoding="utf-8") for path in sorted(directory.glob("*.json")))
    return [found for found in map(json.loads, texts) if "points" in found]


def best(point: Json, of: str) -> tuple[str, float] | None:
    """Name and seconds of a variant, or of the fastest one of a family."""
    found = [
        (float(facts["min"]), name)
        for name, facts in point["variants"].items()
        if of in (name, facts["family"]) and facts.get("min") is not None
    ]
    if not found:
        return None
    seconds, name = min(found)
    return name, seconds


def ratio(point: Json, over: str, under: str) -> float | None:
    """Seconds of one variant, or of the best of a family, over those of another."""
    a, b = best(point, over), best(point, under)
    return a[1] / b[1] if a and b else None


def interval(ratios: Sequence[float]) -> dict[str, float]:
    """The median of ratios and its confidence interval (95 %), whatever their distribution."""
    ordered = sorted(ratios)
    # The places of the bounds, by the normal approximation of the binomial distribution.
    low = max(0, ceil((len(ordered) - 1.96 * sqrt(len(ordered))) / 2) - 1)
    return {
        "median": round(median(ordered), 4),
        "low": round(ordered[low], 4),
        "high": round(ordered[-1 - low], 4),
    }


def overhead(points: Sequence[Json], over: str, under: str, figure: str) -> Json | None:
    """The ratio of two variants, all points together, round by round.

    `figure` is "seconds" or "cpu_seconds".
    """
    sums: dict[str, list[float]] = {}
    for name in (over, under):
        lists = [point["variants"].get(name, {}).get(figure) or [] for point in points]
        sums[name] = [sum(one) for one in zip(*lists)]
    ratios = [a / b for a, b in zip(sums[over], sums[under]) if b > 0]
    if len(ratios) < LEAST_ROUNDS:
        return None
    return {"rounds": len(ratios), **interval(ratios)}


def percent(found: Json | None) -> str:
    """An overhead, such as `+0.4 % (-0.2 to +1.1)`."""
    if not found:
        return ""
    middle, low, high = (100 * (found[key] - 1) for key in ("median", "low", "high"))
    return f"{middle:+.1f} % ({low:+.1f} to {high:+.1f})"


def result(case: Case, points: list[Json], about_run: Json) -> Json:
    """The content of a result file."""
    overheads = {
        f"{over} / {under}": {
            figure: overhead(points, over, under, figure) for figure in ("seconds", "cpu_seconds")
        }
        for under, over in combinations(case.variants, 2)
    }
    return {
        "case": case.name,
        "about": case.about,
        "date": date.today().isoformat(),
        **about_run,
        **({"overhead": overheads} if case.repeats else {}),
        "problems": [problem for point in points for problem in point.pop("problems")],
        "points": points,
    }


def write(found: Json, directory: Path) -> Path:
    """Write the result file of a case."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{found['case']}.json"
    path.write_text(as_json(found), encoding="utf-8")
    return path


def as_json(found: Json) -> str:
    """JSON for readers and diffs: a list of numbers takes one line."""
    text = json.dumps(found, indent=1)
    numbers = re.compile(r"\[\s+(-?[\d.]+(?:,\s+-?[\d.]+)*)\s+\]")
    return numbers.sub(lambda found: "[" + re.sub(r",\s+", ", ", found[1]) + "]", text) + "\n"


def megabytes(count: float | None) -> str:
    """Bytes as MB."""
    return "" if count is None else f"{count / 2**20:,.0f}"


def describe(found: Json) -> str:
    """The printed form of a result."""
    blocks = [f"\n{found['case']}: {found['about']}"]
    for point in found["points"]:
        blocks.append(
            f"{point['label']}, {point['tables']} tables of {point['rows']:,} rows, "
            f"{point['partitions']} partitions"
        )
        blocks.append(as_text(_variant_rows(point)))
        for pair in ("stock / ours", "comet / ours", "ours / duckdb", "ours / floor"):
            value = ratio(point, *pair.split(" / "))
            if value is not None:
                blocks.append(f"  {pair}: {value:.2f}")
    for name, figures in found.get("overhead", {}).items():
        for figure, value in figures.items():
            blocks.append(f"{name}, {figure.replace('_', ' ')}: {percent(value)}")
    blocks.extend(f"PROBLEM {problem}" for problem in found["problems"])
    return "\n".join(blocks)


def as_text(rows: Sequence[Sequence[str]]) -> str:
    """A table: names to the left, figures to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip()
        for row in rows
    )


def _variant_rows(point: Json) -> list[list[str]]:
    head = ["variant", "min s", "median s", "/ ours", "Exchange", "Sort", "MB shuffled"]
    rows = [[*head, "MB spilled", "peak MB a task", "longest task s", "/ median", ""]]
    for name, facts in point["variants"].items():
        fastest, against = facts.get("min"), ratio(point, name, "ours")
        operators = facts.get("operators")
        note = facts.get("failed") or facts.get("refused") or "; ".join(facts.get("splits", []))
        if facts.get("technique", name) != name:
            note = f"{facts['technique']}; {note}"
        balance = facts.get("balance")
        rows.append(
            [
                name,
                "" if fastest is None else f"{fastest:.2f}",
                "" if fastest is None else f"{facts['median']:.2f}",
                "" if against is None else f"{against:.2f}",
                *(str(operators.get(o, 0)) if operators else "" for o in ("Exchange", "Sort")),
                megabytes(facts.get("shuffle_bytes")),
                megabytes(facts.get("spilled_disk_bytes")),
                megabytes(facts.get("peak_task_memory_bytes")),
                f"{balance['longest_ms'] / 1000:.2f}" if balance else "",
                f"{balance['ratio']:.1f}" if balance else "",
                note,
            ]
        )
    return rows


def table(rows: list[list[str]]) -> str:
    """A table: names to the left, figures to the right."""
    head, *body = rows
    marks = ["---", *("---:" for _ in head[1:])]
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, marks, *body))


def where(found: Json, load: str = "other work ran beside it") -> str:
    """Where and when a result was measured."""
    machine = found["machine"]
    about = f"{machine['cores']} cores, {machine['memory_gb']:g} GB, PySpark {machine['pyspark']}"
    return f"Measured on {found['date']} ({about}; {load})."
