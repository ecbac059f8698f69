"""Write the figures of bench/results into the pages that show them.

    bench/summary.py                   README.md, docs/performance.md and docs/reliability.md
    bench/summary.py DIRECTORY         print the tables of other results of bench/run.py

Each block of a page stands between two comments, with the name of the block.
"""

from __future__ import annotations

import json
import sys
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

from harness import facts, skewed_tpch, turns_report
from harness.case import CHAINS
from harness.cases import CASES, HOWS
from harness.job_report import rows as job_rows
from harness.reliability_report import driver, faults, memory
from harness.report import Json, as_json, best, load, ratio, table, where
from harness.task_report import rows as task_rows
from harness.variants import AUTO, STOCK_VARIANT, TECHNIQUES

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"
PERFORMANCE = ROOT / "docs" / "performance.md"
RELIABILITY = ROOT / "docs" / "reliability.md"

BEGIN = "<!-- written by bench/{name} from bench/results -->"
END = "<!-- end of bench/{name} -->"

#: The groups of the table of totals of README.md.
BENCHMARKS = (
    "tpch.py",
    "tpch.py, scale factor 10",
    "tpcds.py",
    "tpcds.py, scale factor 10",
    "tpch.py, joins",
)
#: The cases of README.md, and their names there.
HEADLINES = {
    "n4-string-16": "4 tables, full outer, {} rows each",
    "n8-string-16": "8 tables, full outer, {} rows each",
    "bucketed": "4 tables bucketed and sorted on the key, {} rows each",
    "skew-full-left": "full join, half of {} rows on one key",
}
#: What a key has in cases of versioned tables.
ROWS_OF_A_KEY = {
    "versions": "10 rows of a key",
    "versions100": "100 rows of a key",
    "wideversions": "10 rows of a key, 120 more columns in each table",
    "versions1000": "1,000 rows of a key",
    "versions2000": "2,000 rows of a key, four of the spine",
    "hotversions": "one key with half of all rows, 10 rows of each other",
}
#: Blocks of groups of queries.
TURNS = {
    "tpch.py, joins": ("tpch-sf2-no-broadcast.json", "joins"),
    "tpch.py, beside Comet": ("tpch-sf2-no-broadcast-comet.json", "joins"),
    "tpch.py": ("tpch-sf2.json", "queries"),
    "tpch.py, scale factor 10": ("tpch-sf10.json", "queries"),
    "tpch.py, cliffs": ("tpch-sf2.json", "cliffs"),
    "tpcds.py": ("tpcds-sf1.json", "queries"),
    "tpcds.py, scale factor 10": ("tpcds-sf10.json", "queries"),
    "tpcds.py, no broadcasts": ("tpcds-sf1-no-broadcast.json", "queries"),
    "db_benchmark.py": ("db-benchmark-sf10.json", "joins"),
}
#: The groups of the table of totals of the page, and their names.
TOTALS = {
    "tpch.py": "TPC-H, scale factor 2",
    "tpch.py, scale factor 10": "TPC-H, scale factor 10",
    "tpcds.py": "TPC-DS, scale factor 1",
    "tpcds.py, scale factor 10": "TPC-DS, scale factor 10",
    "tpcds.py, no broadcasts": "TPC-DS, scale factor 1, no broadcasts",
    "tpch.py, joins": "single joins of TPC-H tables, no broadcasts",
    "db_benchmark.py": "db-benchmark, 10,000,000 rows",
}
#: The same beside other engines, on pages of their own.
PEERS = {
    "ranges.py": ("range-joins.md", "ranges-sf1.json", "ranges"),
    "or_joins.py": ("or-joins.md", "or-joins-sf1.json", "joins with OR"),
}
ABOUT = {case.name: case.about for case in CASES}

#: `auto` runs one of the others, by a rule that may be newer than a result.
SHOWN = [name for name in TECHNIQUES if name != AUTO]

Rows = list[list[str]]


def main(arguments: list[str]) -> int:
    """Write the pages, or print the tables."""
    if not arguments:
        write_pages()
        return 0
    found = in_order(Path(arguments[0]))
    print("\n\n".join(filter(None, [cases(found, ""), skew(found, "")])))
    print("\n\n".join(["", techniques(found, "")]))
    return 0 if found else 1


def keep(name: str, **found: Any) -> None:
    """Add to a result file that is not one of a case, and write the pages again."""
    known = read(name)
    known.update(date=date.today().isoformat(), machine=facts.machine(), **found)
    (RESULTS / name).write_text(as_json(known), encoding="utf-8")
    write_pages()


def read(name: str) -> Json:
    """A result file; empty if there is none."""
    path = RESULTS / name
    found: Json = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def write_pages() -> None:
    """Replace all blocks."""
    for page, blocks in pages().items():
        text = page.read_text(encoding="utf-8")
        for name, block in blocks.items():
            text = with_block(text, name, block)
        page.write_text(text, encoding="utf-8")


def pages() -> dict[Path, dict[str, str]]:
    """The blocks of each page, by name."""
    found = in_order(RESULTS)
    base = "../bench/results/"
    return {
        ROOT / "README.md": {"summary.py": headlines(found)},
        PERFORMANCE: {
            "summary.py, totals": totals(),
            "summary.py, cases": cases(found, base),
            "summary.py, versions": versions(found, base),
            "summary.py, skew": skew(found, base),
            "summary.py, techniques": techniques(found, base),
            "merge.py": merge(read("merge.json")),
            "plan_time.py": plan_time(read("plan-time.json")),
            "plan_time.py, where": plan_time(read("plan-time-where.json")),
            **queries(),
        },
        RELIABILITY: {
            "faults.py": faults(read("reliability-faults.json")),
            "memory.py": memory(read("reliability-memory.json")),
            "endurance.py": driver(read("reliability-driver.json")),
        },
        **beside_peers(),
    }


def beside_peers() -> dict[Path, dict[str, str]]:
    """Tables beside other engines that have results."""
    found: dict[Path, dict[str, str]] = {}
    for name, (page, file, group_name) in PEERS.items():
        if group := read(file).get("groups", {}).get(group_name):
            block = table(turns_report.beside_peers(group))
            found.setdefault(ROOT / "docs" / page, {})[name] = block
    return found


def queries() -> dict[str, str]:
    """Tables of queries in SQL and of single tasks that have results and a place in the page."""
    found = {
        name: turns_report.rows(group)
        for name, (file, group_name) in TURNS.items()
        if (group := read(file).get("groups", {}).get(group_name))
    }
    if groups := read("skewed-tpch-sf2.json").get("groups"):
        found["skewed_tpch.py"] = skewed_tpch.penalties(groups)
    if runs := read("job.json").get("runs"):
        found["job.py"] = job_rows(runs)
    if shapes := read("tasks.json").get("shapes"):
        found["tasks.py"] = task_rows(shapes)
    page = PERFORMANCE.read_text(encoding="utf-8")
    return {name: table(rows) for name, rows in found.items() if BEGIN.format(name=name) in page}


def totals() -> str:
    """The sums of groups of queries, and where each was measured."""
    head = ["benchmark", "queries", "with ours", "stock, s", "ours, s", "stock / ours"]
    rows = [[*head, "mean with ours", "mean of the others", "worst query", "measured"]]
    for name, about in TOTALS.items():
        file, group_name = TURNS[name]
        result = read(file)
        if not result:
            continue
        group = result["groups"][group_name]
        found = turns_report.totals(group, "stock", "ours") or {}
        ours = {name: each for name, each in group.items() if turns_report.has_ours(each)}
        others = {name: each for name, each in group.items() if name not in ours}
        means = (turns_report.totals(each, "stock", "ours") for each in (ours, others))
        rows.append(
            [
                about,
                str(found["queries"]),
                str(len(ours)),
                *(f"{found[f'{way}_seconds']:.0f}" for way in ("stock", "ours")),
                f"**{found['ratio']:.2f}**",
                *(f"{each['geometric_mean']:.2f}" if each else "-" for each in means),
                f"{found['worst_ratio']:.2f} ({found['worst']})",
                f"{result['date']}, {result['machine']['cpu'].split('(')[0]}",
            ]
        )
    return table(rows)


def with_block(page: str, name: str, block: str) -> str:
    """The page with another block between the two comments of that name."""
    begin, end = (comment.format(name=name) for comment in (BEGIN, END))
    head, rest = page.split(begin)
    _, tail = rest.split(end)
    return f"{head}{begin}\n{block}\n{end}{tail}"


def in_order(directory: Path) -> list[Json]:
    """The results of cases, in the order of the cases."""
    order = [case.name for case in CASES]
    known = [result for result in load(directory) if result["case"] in order]
    return sorted(known, key=lambda result: order.index(result["case"]))


def _seconds(point: Json, of: str, named: bool = False) -> str:
    found = best(point, of)
    if not found:
        return ""
    return f"{found[1]:.2f} ({found[0]})" if named else f"{found[1]:.2f}"


def _over(point: Json, over: str, under: str) -> str:
    found = ratio(point, over, under)
    return "" if found is None else f"{found:.2f}"


def _case(result: Json, base: str) -> str:
    return f"[{result['case']}]({base}{result['case']}.json): {ABOUT[result['case']]}"


def _measured(result: Json) -> str:
    return f"{result['date']}, {result['settings']['cores']} cores"


# Joins of many tables


def headlines(found: list[Json]) -> str:
    """The machine, the groups of queries and the cases of README.md."""
    groups = {name: read(TURNS[name][0]) for name in BENCHMARKS}
    cases_shown = [result for result in found if result["case"] in HEADLINES]
    head = ["benchmark", "stock Spark, s", "skewext, s", "ratio", "worst query's ratio"]
    rows = [head, *(_total(name, groups[name]) for name in BENCHMARKS if groups[name])]
    for result in cases_shown:
        point = result["points"][0]
        about = HEADLINES[result["case"]].format(f"{point['rows']:,}")
        times = [_seconds(point, "stock"), _seconds(point, "ours")]
        rows.append([about, *times, f"**{_over(point, 'stock', 'ours')}**", "-"])
    return f"{_machines([*filter(None, groups.values()), *cases_shown])}\n\n{table(rows)}"


def _total(name: str, result: Json) -> list[str]:
    found = turns_report.totals(result["groups"][TURNS[name][1]], "stock", "ours") or {}
    times = [f"{found[figure]:.2f}" for figure in ("stock_seconds", "ours_seconds")]
    ratios = [f"**{found['ratio']:.2f}**", f"{found['worst_ratio']:.2f}"]
    return [f"{TOTALS[name]}, {found['queries']} queries", *times, *ratios]


def _machines(results: list[Json]) -> str:
    """Where and when several cases were measured."""
    dates = sorted(result["date"] for result in results)
    machines = dict.fromkeys(
        f"{result['settings']['cores']} cores of an {result['machine']['cpu']} with "
        f"{result['machine']['memory_gb']:g} GB, PySpark {result['machine']['pyspark']}"
        for result in results
    )
    when = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    return f"Measured on {when}: {'; '.join(machines)}."


def cases(found: list[Json], base: str) -> str:
    """Cases of one point, without skew."""
    head = ["case", "rows a table", "best stock plan, s", "ours, s", "stock / ours"]
    rows = [[*head, "ours / floor", "Comet / ours", "ours / DuckDB", "measured"]]
    for result in found:
        point = result["points"][0]
        if len(result["points"]) > 1 or result["case"].startswith(("skew-", "asof", "latest")):
            continue
        rows.append(
            [
                _case(result, base),
                f"{point['rows']:,}",
                _seconds(point, "stock", named=True),
                _seconds(point, "ours"),
                f"**{_over(point, 'stock', 'ours')}**",
                _over(point, "ours", "floor"),
                _over(point, "comet", "ours"),
                _over(point, "ours", "duckdb"),
                _measured(result),
            ]
        )
    return table(rows)


def versions(found: list[Json], base: str) -> str:
    """As-of joins, those of pandas on Spark, and the newest rows."""
    of_case = {result["case"]: result for result in found}
    asof = ["asof-pairs", "asof-union", "asof-tempo", "asof-polars", "asof-duckdb"]
    heads = ["pairs", "union", "tempo", "Polars", "DuckDB"]
    blocks = (
        (("asof", "asof-copies", "asof-groups", "asof-views"), asof, "asof", heads),
        (("asof-sizes",), ["asof-union", "asof-spark"], "asof", ["union", "`ASOF JOIN`"]),
        (("asof-feast",), ["asof-pairs", "asof-feast"], "asof", ["pairs", "Feast"]),
        (("asof-merge",), ["merge-asof"], "merge-asof-ours", ["stock"]),
        (("latest",), ["latest-window", "latest-max-by"], "latest", ["window", "`max_by`"]),
    )
    return "\n\n".join(
        _versions([of_case[case] for case in cases if case in of_case], base, others, ours, heads)
        for cases, others, ours, heads in blocks
        if any(case in of_case for case in cases)
    )


def _versions(
    results: list[Json], base: str, others: list[str], ours: str, heads: list[str]
) -> str:
    rows = [["case", "tables of versions", "rows a table", "ours, s", *heads]]
    for result in results:
        for point in result["points"]:
            about = ROWS_OF_A_KEY[point["kind"]]
            rows.append(
                [
                    f"[{result['case']}]({base}{result['case']}.json): {about}",
                    str(max(1, point["tables"] - 1)),
                    f"{point['rows']:,}",
                    _seconds(point, ours),
                    *(_over(point, other, ours) for other in others),
                ]
            )
    dates = ", ".join(dict.fromkeys(map(_measured, results)))
    return f"Measured on {dates}.\n\n{table(rows)}"


# Skew


def skew(found: list[Json], base: str) -> str:
    """Joins with a hot key."""
    head = ["join", "rows", "stock, s", "ours, s", "stock / ours", "longest / median task: stock"]
    rows = [[*head, "ours", "split", "measured"]]
    for result in (each for each in found if each["case"].startswith("skew-")):
        point = result["points"][0]
        name, _ = best(point, "ours") or ("", 0.0)
        by_hash = _seconds(point, CHAINS[1])
        rows.append(
            [
                _case(result, base),
                f"{point['rows']:,}",
                _seconds(point, CHAINS[0]) + (f" (by hash: {by_hash})" if by_hash else ""),
                _seconds(point, "ours"),
                f"**{_over(point, CHAINS[0], 'ours')}**",
                *(
                    _tasks(point["variants"].get(each, {}).get("balance"))
                    for each in (CHAINS[0], name)
                ),
                _split_by(point["variants"].get(name, {})),
                _measured(result),
            ]
        )
    return table(rows)


def _tasks(balance: Json | None) -> str:
    if not balance:
        return ""
    longest, middle = balance["longest_ms"] / 1000, balance["median_ms"] / 1000
    return f"{longest:.2f} / {middle:.2f} s = {balance['ratio']:.1f}"


def _split_by(facts_of_run: Json) -> str:
    if facts_of_run.get("splits"):
        return "; ".join(facts_of_run["splits"])
    return "by Spark" if facts_of_run.get("operators", {}).get("SparkSplit") else "no"


def techniques(found: list[Json], base: str) -> str:
    """A table for each kind of data, a row for each join."""
    blocks = []
    for result in (each for each in found if each["case"].startswith("technique-")):
        rows = [[f"[{result['case']}]({base}{result['case']}.json)", "stock", *SHOWN]]
        for point in sorted(result["points"], key=lambda point: HOWS.index(point["label"])):
            rows.append([point["label"], *(_cell(point, v) for v in (STOCK_VARIANT, *SHOWN))])
        about, n = ABOUT[result["case"]], result["points"][0]["rows"]
        blocks.append(
            f"{about[0].upper()}{about[1:]}; {n:,} rows on the left; {_measured(result)}:"
        )
        blocks.append(table(rows))
    return "\n\n".join(blocks)


def _cell(point: Json, name: str) -> str:
    ran = point["variants"].get(name)
    if ran is None:
        return "as `broadcast_map`"
    if ran.get("min") is None:
        return "refuses" if ran.get("refused") else "fails"
    times = "" if name == STOCK_VARIANT else f" ({_over(point, STOCK_VARIANT, name)})"
    text = f"{ran['min']:.2f} s{times}"
    others = [point["variants"].get(each, {}).get("min") for each in SHOWN]
    is_fastest = name in SHOWN and ran["min"] == min(each for each in others if each is not None)
    return f"**{text}**" if is_fastest else text


# MERGE, and the time for planning


def merge(found: Json) -> str:
    """Seconds and tasks of each MERGE."""
    rows = [["MERGE", "table", "rows", "", "s", "stock / ours", "longest / median task", "split"]]
    for name, case in found["cases"].items():
        for way in ("stock", "ours"):
            seconds, stock = (median(case[each]["seconds"]) for each in (way, "stock"))
            against = "" if way == "stock" else f"**{stock / seconds:.2f}**"
            clauses, kind, size = name.split("; ")
            about = [clauses, kind, f"{int(size):,}", way, f"{seconds:.1f}", against]
            by = {"us": case[way]["split_by_us"], "Spark": case[way]["split_by_spark"]}
            split = ", ".join(f"{n} by {who}" for who, n in by.items() if n) or "none"
            rows.append([*about, _tasks(case[way]["tasks"]), split])
    return f"{where(found, 'nothing else ran')}\n\n{table(rows)}"


def plan_time(found: Json) -> str:
    """Milliseconds of CPU time for each query."""
    rows = [["query", "stock, ms", "ours, ms", "ours / stock, median of pairs"]]
    for each in found["queries"]:
        ms = (f"{each[v]['min_ms']:.2f} ({each[v]['median_ms']:.2f})" for v in ("stock", "ours"))
        of = each["ratio"]
        between = f"{of['median']:.3f} ({of['low']:.3f} to {of['high']:.3f})"
        rows.append([f"{each['query']}: {each['about']}", *ms, between])
    return f"{where(found, 'other work ran beside it')}\n\n{table(rows)}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
