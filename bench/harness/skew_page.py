"""What was measured of joins with a hot key, and without, in tables."""

from __future__ import annotations

from harness.report import Json, best, percent
from harness.tables import over, seconds, verdict

#: What is compared in the case without skew.
OVERHEADS = {
    "skew-on / without": "extension on, against off",
    "skew-on / skew-off": "`spark.skewext.skew.enabled` true, against false",
}


def rows(results: list[Json], base: str = "") -> list[list[str]]:
    """Seconds of the whole query, and the longest task of the join beside the median one.

    Stock is what Spark plans by itself; its other algorithm, where it was measured, beside it.
    """
    head = ["join", "rows", "stock, s", "ours, s", "stock / ours", "longest / median task: stock"]
    found = [[*head, "ours", "split", "goals"]]
    for result in results:
        point = result["points"][0]
        (name, _) = best(point, "ours") or ("", 0)
        hashed = seconds(point, "shufflehash")
        found.append(
            [
                f"[{result['case']}]({base}{result['case']}.json): {result['about']}",
                f"{point['rows']:,}",
                seconds(point, "sortmerge") + (f" (by hash: {hashed})" if hashed else ""),
                seconds(point, "ours"),
                f"**{over(point, 'sortmerge', 'ours')}**",
                _balance(point, "sortmerge"),
                _balance(point, name),
                _split_by(point, name),
                "; ".join(verdict(goal) for goal in result["goals"]),
            ]
        )
    return found


def _balance(point: Json, name: str) -> str:
    found = point["variants"].get(name, {}).get("balance")
    if not found:
        return ""
    longest, median = found["longest_ms"] / 1000, found["median_ms"] / 1000
    return f"{longest:.2f} / {median:.2f} s = {found['ratio']:.1f}"


def _split_by(point: Json, name: str) -> str:
    """Who has split the join in our run, and into what."""
    facts = point["variants"].get(name, {})
    if facts.get("splits"):
        return "; ".join(facts["splits"])
    return "by Spark" if facts.get("operators", {}).get("SparkSplit") else "no"


def overhead_rows(result: Json, base: str = "") -> list[list[str]]:
    """More time and more CPU time, all queries together; in brackets where the median may lie."""
    head = [f"[{result['case']}]({base}{result['case']}.json): {result['about']}", "rounds"]
    found = [[*head, "the quickest round, s", "time", "CPU time", "goals"]]
    for pair, figures in result["overhead"].items():
        _, other = pair.split(" / ")
        lists = (point["variants"][other]["seconds"] for point in result["points"])
        rounds = [sum(one) for one in zip(*lists)]
        found.append(
            [
                OVERHEADS.get(pair, pair),
                str(len(rounds)),
                f"{min(rounds):.2f}" if rounds else "",
                percent(figures["seconds"]),
                percent(figures["cpu_seconds"]),
                "; ".join(verdict(goal) for goal in result["goals"] if pair in goal["goal"]),
            ]
        )
    return found
