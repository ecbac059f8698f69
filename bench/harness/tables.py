"""Cells and tables of Markdown, as `summary.py` and `simulate.py` write them."""

from __future__ import annotations

from harness.report import Json, best


def table(rows: list[list[str]]) -> str:
    """A table: names to the left, figures to the right."""
    head, *body = rows
    marks = ["---", *("---:" for _ in head[1:])]
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, marks, *body))


def over(point: Json, above: str, below: str) -> str:
    """How many times one variant, or the best of a family, takes what another takes."""
    a, b = best(point, above), best(point, below)
    return f"{a[1] / b[1]:.2f}" if a and b else ""


def seconds(point: Json, of: str, named: bool = False) -> str:
    """Of a variant, or of the best of a family, with its name if asked for."""
    found = best(point, of)
    if not found:
        return ""
    return f"{found[1]:.2f} ({found[0]})" if named else f"{found[1]:.2f}"


def verdict(goal: Json) -> str:
    """A goal and whether it is reached."""
    said = {True: "reached", False: "not reached", None: "not measured"}[goal["reached"]]
    return f"{goal['goal']}: {said}"
