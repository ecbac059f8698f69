"""What came out: ratios, goals, the printed table and the result file."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import date
from math import ceil, sqrt
from pathlib import Path
from statistics import median
from typing import Any

from harness.case import Case, Goal

Json = dict[str, Any]


def load(directory: Path) -> list[Json]:
    """All results of a directory; other scripts keep theirs there too."""
    texts = (path.read_text(encoding="utf-8") for path in sorted(directory.glob("*.json")))
    return [found for found in map(json.loads, texts) if "points" in found]


def best(point: Json, of: str, figure: str = "min") -> tuple[str, float] | None:
    """Name and figure of a variant, or of the fastest of a family."""
    found = [
        (float(facts[figure]), name)
        for name, facts in point["variants"].items()
        if of in (name, facts["family"]) and facts.get(figure) is not None
    ]
    if not found:
        return None
    value, name = min(found)
    return name, value


#: Which of a variant's facts, of its last run, a goal's quantity is.
_BYTES = {"spilled": "spilled_disk_bytes", "shuffled": "shuffle_bytes"}


def _bytes_of(point: Json, variant: str, quantity: str) -> float | None:
    facts = point["variants"].get(variant, {})
    return None if facts.get("failed") else facts.get(_BYTES[quantity])


def ratios(point: Json) -> Json:
    """What the figures come to, beside each other."""
    found = {}
    for over, under in (("stock", "ours"), ("comet", "ours"), ("ours", "floor")):
        for figure in ("min", "median"):
            a, b = best(point, over, figure), best(point, under, figure)
            if a and b:
                found[f"{over} / {under}, {figure}"] = round(a[1] / b[1], 3)
    return found


def overhead(points: Sequence[Json], over: str, under: str, figure: str) -> Json | None:
    """How many times the one takes what the other takes, all points together, round by round.

    `figure` is "seconds" or "cpu_seconds". What the median of the rounds' ratios is known to lie
    within (in 19 of 20 cases) comes from the order of the ratios, however they are distributed.
    """
    sums: dict[str, list[float]] = {}
    for name in (over, under):
        lists = [point["variants"].get(name, {}).get(figure) or [] for point in points]
        sums[name] = [sum(one) for one in zip(*lists)]
    ratios = sorted(a / b for a, b in zip(sums[over], sums[under]) if b > 0)
    if len(ratios) < LEAST_ROUNDS:
        return None
    # The bounds' places in a binomial distribution that is nearly normal.
    low = max(0, ceil((len(ratios) - 1.96 * sqrt(len(ratios))) / 2) - 1)
    return {
        "rounds": len(ratios),
        "median": round(median(ratios), 4),
        "low": round(ratios[low], 4),
        "high": round(ratios[-1 - low], 4),
        "quartiles": [round(ratios[len(ratios) * q // 4], 4) for q in (1, 3)],
    }


LEAST_ROUNDS = 6
"""Fewer do not tell what the median lies within."""


def worst_ratio(points: Sequence[Json], over: str, under: str) -> float | None:
    """The most that the one takes of what the other takes; nothing if a figure is missing."""
    pairs = [(best(point, over), best(point, under)) for point in points]
    ratios = [a[1] / b[1] for a, b in pairs if a and b]
    return max(ratios) if ratios and len(ratios) == len(pairs) else None


def judge(goal: Goal, points: Sequence[Json]) -> Json:
    """Compare with a goal; without figures it is not reached."""
    point = points[0]
    if goal.quantity == "overhead":
        found = overhead(points, goal.over, goal.under, "seconds")
        reached = None if found is None else goal.reached(found["median"], 1.0)
        return {"goal": str(goal), "value": found and found["median"], "reached": reached}
    if goal.quantity == "every":
        worst = worst_ratio(points, goal.over, goal.under)
        reached = None if worst is None else goal.reached(worst, 1.0)
        return {"goal": str(goal), "value": worst and round(worst, 3), "reached": reached}
    if goal.quantity == "tasks":
        ratio = point["variants"].get(goal.over, {}).get("balance", {}).get("ratio")
        reached = None if ratio is None else goal.reached(ratio, 1.0)
        return {"goal": str(goal), "value": ratio, "reached": reached}
    if goal.quantity in _BYTES:
        a, b = (_bytes_of(point, each, goal.quantity) for each in (goal.over, goal.under))
        # Where the other one did not get through, that is enough.
        reached = a is not None and (b is None or goal.reached(a, b))
        return {"goal": str(goal), "value": None, "reached": reached, "over": a, "under": b}
    over, under = best(point, goal.over), best(point, goal.under)
    if over is None or under is None:
        return {"goal": str(goal), "value": None, "reached": None}
    value = over[1] / under[1]
    reached = goal.reached(over[1], under[1])
    return {"goal": str(goal), "value": round(value, 3), "reached": reached}


def result(case: Case, points: list[Json], about_run: Json) -> Json:
    """Everything that goes into the result file."""
    for point in points:
        point["ratios"] = ratios(point)
    return {
        "case": case.name,
        "about": case.about,
        "axis": case.axis,
        "date": date.today().isoformat(),
        **about_run,
        **({"overhead": overheads(case, points)} if case.repeats else {}),
        "goals": [judge(goal, points) for goal in case.goals],
        "problems": [problem for point in points for problem in point.pop("problems")],
        "points": points,
    }


def overheads(case: Case, points: Sequence[Json]) -> Json:
    """What the last variant takes against each of the others."""
    *others, last = case.variants
    return {
        f"{last} / {other}": {
            figure: overhead(points, last, other, figure) for figure in ("seconds", "cpu_seconds")
        }
        for other in others
    }


def percent(found: Json | None) -> str:
    """An overhead as a reader likes it: `+0.4 % (-0.2 to +1.1)`."""
    if not found:
        return ""
    middle, low, high = (100 * (found[key] - 1) for key in ("median", "low", "high"))
    return f"{middle:+.1f} % ({low:+.1f} to {high:+.1f})"


def write(found: Json, directory: Path) -> Path:
    """Write a result file, one a case."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{found['case']}.json"
    path.write_text(as_json(found), encoding="utf-8")
    return path


def as_json(found: Json) -> str:
    """JSON to be read and compared by people: lists of numbers, such as tasks, take one line."""
    text = json.dumps(found, indent=1)
    numbers = re.compile(r"\[\s+(-?[\d.]+(?:,\s+-?[\d.]+)*)\s+\]")
    return numbers.sub(lambda found: "[" + re.sub(r",\s+", ", ", found[1]) + "]", text) + "\n"


def megabytes(count: float | None) -> str:
    """Bytes as a reader likes them."""
    return "" if count is None else f"{count / 2**20:,.0f}"


def as_text(rows: Sequence[Sequence[str]]) -> str:
    """A table: names to the left, figures to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:]))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def describe(found: Json) -> str:
    """The printed form of a result."""
    blocks = [f"\n{found['case']}: {found['about']}"]
    for point in found["points"]:
        blocks.append(
            f"{point['label']}, {point['tables']} tables of {point['rows']:,} rows, "
            f"{point['partitions']} partitions"
        )
        blocks.append(as_text(_variant_rows(point)))
        blocks.extend(f"  {name}: {value:.2f}" for name, value in point["ratios"].items())
    for goal in found["goals"]:
        digits = 4 if goal["goal"].startswith("overhead") else 2
        value = "" if goal["value"] is None else f", is {goal['value']:.{digits}f}"
        verdict = {True: "reached", False: "NOT REACHED", None: "no figures"}[goal["reached"]]
        blocks.append(f"goal {goal['goal']}{value}: {verdict}")
    for name, figures in found.get("overhead", {}).items():
        for figure, value in figures.items():
            blocks.append(f"{name}, {figure.replace('_', ' ')}: {percent(value)}")
    blocks.extend(f"PROBLEM {problem}" for problem in found["problems"])
    return "\n".join(blocks)


def _variant_rows(point: Json) -> list[list[str]]:
    head = ["variant", "min s", "median s", "/ ours", "Exchange", "Sort", "MB shuffled"]
    rows = [[*head, "MB spilled", "peak MB a task", "longest task s", "/ median", ""]]
    ours = best(point, "ours")
    for name, facts in point["variants"].items():
        fastest = facts.get("min")
        operators = facts.get("operators", {})
        note = facts.get("failed") or facts.get("refused") or "; ".join(facts.get("splits", []))
        if facts.get("technique", name) != name:
            note = f"{facts['technique']}; {note}"
        balance = facts.get("balance")
        if facts.get("dropped"):
            note = f"dropped after {facts['warm_up']:.2f} s"
        rows.append(
            [
                name,
                "" if fastest is None else f"{fastest:.2f}",
                "" if fastest is None else f"{facts['median']:.2f}",
                f"{fastest / ours[1]:.2f}" if fastest is not None and ours else "",
                str(operators.get("Exchange", 0)) if operators else "",
                str(operators.get("Sort", 0)) if operators else "",
                megabytes(facts.get("shuffle_bytes")),
                megabytes(facts.get("spilled_disk_bytes")),
                megabytes(facts.get("peak_task_memory_bytes")),
                f"{balance['longest_ms'] / 1000:.2f}" if balance else "",
                f"{balance['ratio']:.1f}" if balance else "",
                note,
            ]
        )
    return rows
