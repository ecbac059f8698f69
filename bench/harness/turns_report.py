"""The table of a run of queries: seconds of each way, ratios of pairs, totals."""

from __future__ import annotations

from math import exp, log
from statistics import median
from typing import Any

from harness.questions import SHUFFLED, family
from harness.report import as_text

Json = dict[str, Any]


def pair_ratio(question: Json, over: str, under: str, figure: str = "seconds") -> float | None:
    """The median of the rounds' ratios: how many times as long `over` takes.

    `figure` is "seconds" or "cpu_seconds", which other work on the machine disturbs less.
    """
    ways = question["ways"]
    pairs = zip(*(ways.get(name, {}).get(figure) or [] for name in (over, under)))
    ratios = [a / b for a, b in pairs if b > 0]
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
    seconds, cpu = (
        [
            sum(median(questions[name]["ways"][way][figure]) for name in both)
            for way in (over, under)
        ]
        for figure in ("seconds", "cpu_seconds")
    )
    worst = min(both, key=lambda name: both[name])
    return {
        "queries": len(both),
        f"{over}_seconds": round(seconds[0], 2),
        f"{under}_seconds": round(seconds[1], 2),
        "ratio": round(seconds[0] / seconds[1], 3),
        "cpu_ratio": round(cpu[0] / cpu[1], 3) if cpu[1] else None,
        "geometric_mean": round(exp(sum(map(log, both.values())) / len(both)), 3),
        "worst": worst,
        "worst_ratio": round(both[worst], 3),
        "slower_than_5_percent": sorted(name for name, ratio in both.items() if ratio < 1 / 1.05),
    }


def rows(questions: dict[str, Json]) -> list[list[str]]:
    """The table of a group, with its totals."""
    ways = list(dict.fromkeys(way for each in questions.values() for way in each["ways"]))
    others = [way for way in ways if way != "ours"] if "ours" in ways else []
    head = ["query", *(f"{way}, s" for way in ways)]
    for way in others:
        head += [f"{way} / ours", "CPU"]
    found = [[*head, "joins of ours", "shuffled joins of Spark"]]
    for name, each in questions.items():
        figures = [each["ways"].get(way, {}).get("median") for way in ways]
        for way in others:
            figures += [pair_ratio(each, way, "ours", of) for of in ("seconds", "cpu_seconds")]
        kinds = (str(_joins(each, of)) for of in (("ours",), SHUFFLED))
        found.append([name, *map(_figure, figures), *kinds])
    for over in others:
        found += _total_rows(questions, ways, others, over)
    return found


def has_ours(question: Json) -> bool:
    """Whether a join of ours is in the last plan of a query."""
    return _joins(question, ("ours",)) > 0


def _joins(question: Json, families: tuple[str, ...]) -> int:
    joins = question["ways"].get("ours", {}).get("joins", {})
    return sum(n for kind, n in joins.items() if family(kind) in families)


def beside_peers(questions: dict[str, Json]) -> list[list[str]]:
    """The same beside other engines: seconds, and how many times as long stock and DuckDB take."""
    ways = list(dict.fromkeys(way for each in questions.values() for way in each["ways"]))
    found = [["join", *(f"{way}, s" for way in ways), "stock / ours", "DuckDB / ours"]]
    for each in questions.values():
        stock = _figure(pair_ratio(each, "stock", "ours"))
        estimate = _estimate(each, questions)
        if not stock and estimate:
            stock = f"about {estimate / (_median(each, 'ours') or 1):,.0f}"
        figures = [_figure(_median(each, way)) for way in ways]
        duck = _figure(pair_ratio(each, "duckdb", "ours"))
        found.append([each["about"], *figures, stock, duck])
    return found


def describe(questions: dict[str, Json]) -> str:
    """The same as text, the estimates, and all problems."""
    problems = [f"PROBLEM {problem}" for each in questions.values() for problem in each["problems"]]
    return "\n".join([as_text(rows(questions)), *estimates(questions), *problems])


def estimates(questions: dict[str, Json]) -> list[str]:
    """The times of stock Spark for queries that it does not run, by pairs of smaller queries."""
    found = []
    for name, each in questions.items():
        estimate, ours = _estimate(each, questions), _median(each, "ours")
        if estimate and ours:
            found.append(
                f"{name}: {estimate:.0f} s of stock by the pairs of {each['smaller']}, "
                f"{estimate / ours:.0f} times ours"
            )
    return found


def _estimate(question: Json, questions: dict[str, Json]) -> float | None:
    """Seconds of stock Spark by the pairs of a smaller query."""
    smaller = questions.get(question["smaller"], {})
    seconds = _median(smaller, "stock")
    return seconds * question["pairs"] / smaller["pairs"] if seconds else None


def _median(question: Json, way: str) -> float | None:
    found: float | None = question.get("ways", {}).get(way, {}).get("median")
    return found


def _total_rows(
    questions: dict[str, Json], ways: list[str], others: list[str], over: str
) -> list[list[str]]:
    found = totals(questions, over, "ours")
    if not found:
        return []
    figures = [found.get(f"{way}_seconds") for way in ways]
    for way in others:
        figures += [found["ratio"], found["cpu_ratio"]] if way == over else [None, None]
    mean, worst = found["geometric_mean"], f"worst {found['worst']} {found['worst_ratio']:.2f}"
    return [[f"{found['queries']} of {over}", *map(_figure, figures), f"mean {mean:.2f}", worst]]


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
