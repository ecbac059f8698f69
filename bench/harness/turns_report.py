"""The table of a run of queries: seconds of each way, ratios of pairs, totals."""

from __future__ import annotations

from math import exp, log
from statistics import median
from typing import Any

from harness.questions import SHUFFLED, family

Json = dict[str, Any]


def pair_ratio(question: Json, over: str, under: str) -> float | None:
    """The median of the rounds' ratios: how many times as long `over` takes."""
    ways = question["ways"]
    pairs = zip(*(ways.get(name, {}).get("seconds", []) for name in (over, under)))
    ratios = [a / b for a, b in pairs]
    return median(ratios) if ratios else None


def totals(questions: dict[str, Json], over: str, under: str) -> Json | None:
    """Of the queries that both have run: seconds, their ratio, the geometric mean, the worst."""
    both = {
        name: ratio
        for name, each in questions.items()
        if (ratio := pair_ratio(each, over, under)) is not None
    }
    if not both:
        return None
    seconds = [
        sum(questions[name]["ways"][way]["median"] for name in both) for way in (over, under)
    ]
    worst = min(both, key=lambda name: both[name])
    return {
        "queries": len(both),
        f"{over}_seconds": round(seconds[0], 2),
        f"{under}_seconds": round(seconds[1], 2),
        "ratio": round(seconds[0] / seconds[1], 3),
        "geometric_mean": round(exp(sum(map(log, both.values())) / len(both)), 3),
        "worst": worst,
        "worst_ratio": round(both[worst], 3),
        "slower_than_5_percent": sorted(name for name, ratio in both.items() if ratio < 1 / 1.05),
    }


def describe(questions: dict[str, Json]) -> str:
    """The table of a group, with its totals."""
    ways = list(dict.fromkeys(way for each in questions.values() for way in each["ways"]))
    others = [way for way in ways if way != "ours"] if "ours" in ways else []
    head = ["query", *ways, *(f"{way} / ours" for way in others), "joins: ours", "Spark's shuffled"]
    rows = [head]
    for name, each in questions.items():
        medians = (each["ways"].get(way, {}).get("median") for way in ways)
        ratios = (pair_ratio(each, way, "ours") for way in others)
        joins = each["ways"].get("ours", {}).get("joins", {})
        kinds = [
            sum(n for j, n in joins.items() if family(j) in of) for of in (("ours",), SHUFFLED)
        ]
        rows.append([name, *map(_figure, (*medians, *ratios)), *map(str, kinds)])
    for over in others:
        found = totals(questions, over, "ours")
        if found:
            rows.append(
                [
                    f"{found['queries']} of {over}",
                    *(_figure(found.get(f"{way}_seconds")) for way in ways),
                    *(_figure(found["ratio"] if way == over else None) for way in others),
                    f"mean {found['geometric_mean']:.2f}",
                    f"worst {found['worst']} {found['worst_ratio']:.2f}",
                ]
            )
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    lines = (
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip()
        for row in rows
    )
    problems = [f"PROBLEM {problem}" for each in questions.values() for problem in each["problems"]]
    return "\n".join([*lines, *problems])


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
