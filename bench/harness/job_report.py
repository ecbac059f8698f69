"""The table of what a job pays."""

from __future__ import annotations

from statistics import median
from typing import Any

from harness.ways import WAYS


def rows(found: dict[str, list[dict[str, Any]]]) -> list[list[str]]:
    """The table: medians of all processes."""
    names = [name for name in found["on"][0] if name != "outcome"]
    lines = [["", *("without" if way == "off" else "with skewext" for way in WAYS), "ratio"]]
    for name in names:
        figures = [median(run[name] for run in found[way]) for way in WAYS]
        ratio = figures[WAYS.index("on")] / figures[WAYS.index("off")]
        lines.append([name, *(f"{figure:.2f}" for figure in figures), f"{ratio:.2f}"])
    return lines
