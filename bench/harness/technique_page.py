"""What was measured of the techniques of `skew_join`, in a table for each kind of data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.report import Json, best, megabytes
from harness.tables import verdict
from harness.technique_plans import AUTO, FAMILY, STOCK_VARIANT, TECHNIQUES

CLOSE = 1.15
"""So near to the best technique `auto` should be."""

SHARE = 0.9
"""In so many cells of ten."""


def rows(result: Json, base: str = "") -> list[list[str]]:
    """A row for each kind of join: seconds and what that is against stock, tasks, and memory."""
    columns = (STOCK_VARIANT, *TECHNIQUES)
    head = [f"[{result['case']}]({base}{result['case']}.json)", "stock", *TECHNIQUES]
    found = [head]
    for point in result["points"]:
        fastest = best(point, FAMILY)
        winner = fastest[0] if fastest else ""
        cells = [_cell(point, name, bold=name == winner) for name in columns]
        found.append([str(point["label"]), *cells])
    return found


def _cell(point: Json, name: str, bold: bool) -> str:
    facts = point["variants"].get(name)
    if facts is None:
        return "as `broadcast_map`"
    if facts.get("refused"):
        return "refuses"
    if facts.get("min") is None:
        return "fails"
    ratio = speed_up(point, name)
    times = "" if ratio is None or name == STOCK_VARIANT else f" ({ratio:.2f})"
    lines = [f"**{facts['min']:.2f} s{times}**" if bold else f"{facts['min']:.2f} s{times}"]
    if name == AUTO and facts.get("technique"):
        lines.append(f"`{facts['technique']}`")
    balance = facts.get("balance")
    lines.append(f"{balance['ratio']:.1f}" if balance else "")
    lines.append(f"{megabytes(facts.get('peak_task_memory_bytes'))} MB")
    return "<br>".join(filter(None, lines))


def speed_up(point: Json, name: str) -> float | None:
    """How many times as long as a variant stock Spark takes."""
    stock, found = best(point, STOCK_VARIANT), best(point, name)
    return stock[1] / found[1] if stock and found else None


def refusals(results: Sequence[Json]) -> list[str]:
    """Which joins a technique does not do, and why, each once."""
    found: dict[str, list[str]] = {}
    for result in results:
        for point in result["points"]:
            for name, facts in point["variants"].items():
                if facts.get("refused"):
                    where = f"{point['label']} of `{result['case']}`"
                    found.setdefault(f"`{name}`: {facts['refused']}", []).append(where)
    return [f"* {why} ({', '.join(where)})" for why, where in found.items()]


def goals(results: Sequence[Json]) -> list[str]:
    """What was wanted, and whether it is so."""
    lines = [
        f"* {result['case']}: {verdict(goal)}{_value(goal)}"
        for result in results
        for goal in result["goals"]
    ]
    cells = list(_auto_against_best(results))
    if cells:
        near = sum(ratio <= CLOSE for ratio in cells)
        reached = "reached" if near >= SHARE * len(cells) else "not reached"
        lines.append(
            f"* `auto` within {CLOSE - 1:.0%} of the best technique in 9 of 10 joins: {reached}, "
            f"it is in {near} of {len(cells)}"
        )
    return lines


def _value(goal: Json) -> str:
    return "" if goal["value"] is None else f", is {goal['value']:.2f}"


def _auto_against_best(results: Sequence[Json]) -> Iterator[float]:
    for result in results:
        for point in result["points"]:
            auto, fastest = best(point, AUTO), best(point, FAMILY)
            if auto and fastest:
                yield auto[1] / fastest[1]
