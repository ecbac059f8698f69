"""The table of single tasks."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

_FIGURES = {
    "seconds": "s",
    "cpu_seconds": "CPU s",
    "shuffle_mb": "MB shuffled",
    "spilled_mb": "MB spilled",
    "memory_mb": "MB of memory",
    "files": "open files",
    "wait_ms": "ms waited",
}


def rows(shapes: dict[str, Json]) -> list[list[str]]:
    """A row for each shape and way; the ratios are those of Spark's figures to it."""
    head = ["task", "way", "exchange", "join", *_FIGURES.values(), "stock / this", "CPU"]
    return [head, *(_row(name, way, each) for name, each in shapes.items() for way in each["ways"])]


def _row(name: str, way: str, shape: Json) -> list[str]:
    found, stock = shape["ways"][way], shape["ways"].get("stock", {})
    if "failed" in found:
        return [name, way, found["failed"], *[""] * (len(_FIGURES) + 3)]
    # A map task has nothing of the join above.
    join = found["join"] if found["rows"] else ""
    figures = (f"{found[figure]:g}" if figure in found else "" for figure in _FIGURES)
    ratios = (
        f"{stock[figure] / found[figure]:.2f}" if stock.get(figure) and found[figure] else ""
        for figure in ("seconds", "cpu_seconds")
    )
    return [name, way, found["exchange"], join, *figures, *ratios]
