"""Write README.md beside the result files: what a reader asks for first, in tables.

    bench/summary.py [DIRECTORY]       bench/results without one

It is made of the result files alone, so that it cannot say anything else than they do. So are the
figures in the project's README.md and in pages of docs, between two comments, which are written as
well when the directory is bench/results.
"""

from __future__ import annotations

import sys
from pathlib import Path

from harness import merge_page, plan_page, reliability_page, skew_page, technique_page
from harness.cases import CASES
from harness.report import Json, best, load, megabytes
from harness.tables import over, seconds, table, verdict

BENCH = Path(__file__).resolve().parent
RESULTS = BENCH / "results"

#: What stands in README.md: these cases, in these words.
HEADLINES = {
    "n4-string-16": "4 tables, full outer, 16-character keys",
    "n8-string-16": "8 tables, the same",
    "n4-long": "4 tables, long keys",
    "n8-long": "8 tables, long keys",
    "bucketed": "4 tables bucketed and sorted on the key",
    "duplicates": "4 tables, 10 rows a key in two of them",
    "n2": "2 tables, for which Spark has an operator",
}
#: Beginnings of the names of cases that are not about N-way joins without skew.
SKEW = ("skew-", "buckets-skew")
TECHNIQUE = "technique-"

BEGIN = "<!-- written by bench/{tool} from bench/results -->"
END = "<!-- end of what is written by bench/{tool} -->"


def main(arguments: list[str]) -> int:
    """Write the page."""
    directory = Path(arguments[0]) if arguments else RESULTS
    found = in_order(directory)
    if not found:
        print(f"no results in {directory}", file=sys.stderr)
        return 1
    compared = _compared(found)
    blocks = ["# Results", "Written by `bench/summary.py`; [how to read this](../README.md)."]
    if compared:
        blocks += ["## Cases", table(_case_rows(compared))]
    skewed = _skewed(found)
    if skewed:
        blocks += ["## Joins with a hot key", table(skew_page.rows(skewed))]
    techniques = _techniques(found)
    if techniques:
        blocks += ["## Techniques of skew_join", *_technique_blocks(techniques)]
    spilling = [r for r in compared if r["points"][0]["heap"]]
    for result in spilling:
        blocks += [f"## {_title(result)}", table(_memory_rows(result["points"][0]))]
    for result in found:
        if result["axis"] is not None:
            blocks += [f"## {_title(result)}", table(_curve_rows(result))]
        elif "overhead" in result:
            blocks += [f"## {_title(result)}", table(skew_page.overhead_rows(result))]
        elif result in skewed or result in techniques:
            continue
        elif result not in compared:
            blocks += [f"## {_title(result)}", table(_time_rows(result["points"][0]))]
    blocks += ["## Where and when", table(_machine_rows(found))]
    problems = [problem for result in found for problem in result["problems"]]
    if problems:
        blocks += ["## Problems", "\n".join(f"* {problem}" for problem in problems)]
    text = "\n\n".join(blocks) + "\n"
    (directory / "README.md").write_text(text, encoding="utf-8")
    print(text)
    if directory.resolve() == RESULTS:
        write_pages(pages(found), "summary.py")
        write_pages(plan_page.pages(), plan_page.TOOL)
        write_pages(merge_page.pages(), merge_page.TOOL)
        for tool, block in reliability_page.blocks().items():
            write_pages({reliability_page.PAGE: block}, tool)
    return 0


def in_order(directory: Path) -> list[Json]:
    """Results of the known cases, in the order of the cases."""
    order = [case.name for case in CASES]
    return sorted(
        (result for result in load(directory) if result["case"] in order),
        key=lambda result: order.index(result["case"]),
    )


def _compared(found: list[Json]) -> list[Json]:
    """Those of one point at which our join has a figure."""
    return [r for r in _with_ours(found) if not r["case"].startswith(SKEW)]


def _skewed(found: list[Json]) -> list[Json]:
    """The same, where a partition is skewed."""
    return [r for r in _with_ours(found) if r["case"].startswith(SKEW)]


def _with_ours(found: list[Json]) -> list[Json]:
    return [r for r in found if r["axis"] is None and best(r["points"][0], "ours")]


def pages(found: list[Json]) -> dict[Path, str]:
    """The project's pages with figures in them, and their figures."""
    compared = _compared(found)
    headlines = [r for r in compared if r["case"] in HEADLINES]
    base = "../bench/results/"
    return {
        BENCH.parent / "README.md": table(_headline_rows(headlines)),
        BENCH.parent / "docs" / "performance.md": table(_case_rows(compared, base)),
        BENCH.parent / "docs" / "skew-figures.md": _skew_block(found, base),
        BENCH.parent / "docs" / "skew-join.md": _technique_page(found, base),
    }


def _skew_block(found: list[Json], base: str) -> str:
    """What was measured of joins with a hot key; nothing before it was."""
    overheads = [r for r in found if "overhead" in r]
    blocks = [table(skew_page.overhead_rows(r, base)) for r in overheads]
    skewed = _skewed(found)
    if skewed:
        plot = f"![longest tasks and seconds, stock Spark and ours]({base}skew.svg)"
        blocks = [table(skew_page.rows(skewed, base)), plot, *blocks]
    return "\n\n".join(blocks)


def write_pages(blocks: dict[Path, str], tool: str) -> None:
    """Put figures into pages, each between the two comments of the tool."""
    for page, block in blocks.items():
        text = with_block(page.read_text(encoding="utf-8"), block, tool)
        page.write_text(text, encoding="utf-8")


def _techniques(found: list[Json]) -> list[Json]:
    return [r for r in found if r["case"].startswith(TECHNIQUE)]


def _technique_blocks(results: list[Json], base: str = "") -> list[str]:
    """A table for each kind of data, and below them what was wanted and what is refused."""
    blocks = []
    for result in results:
        first = result["points"][0]
        blocks.append(f"{result['about']}; {first['rows']:,} rows on the left:")
        blocks.append(table(technique_page.rows(result, base)))
    blocks.append("\n".join(technique_page.goals(results)))
    refused = technique_page.refusals(results)
    return [*blocks, "\n".join(["Refused:", "", *refused])] if refused else blocks


def _technique_page(found: list[Json], base: str) -> str:
    """What was measured of techniques; nothing before it was."""
    techniques = _techniques(found)
    if not techniques:
        return ""
    plot = f"![time of stock Spark over time of each technique]({base}techniques.svg)"
    return "\n\n".join([plot, *_technique_blocks(techniques, base)])


def with_block(page: str, block: str, tool: str = "summary.py") -> str:
    """The page with the figures between the two comments of the tool replaced."""
    begin, end = (comment.format(tool=tool) for comment in (BEGIN, END))
    head, rest = page.split(begin)
    _, tail = rest.split(end)
    return f"{head}{begin}\n{block}\n{end}{tail}"


def _headline_rows(results: list[Json]) -> list[list[str]]:
    rows = [["join", "rows a table", "Spark's best plan, s", "`multi_full_join`, s", "ratio"]]
    for result in results:
        point = result["points"][0]
        rows.append(
            [
                HEADLINES[result["case"]],
                f"{point['rows']:,}",
                seconds(point, "stock"),
                seconds(point, "ours"),
                f"**{over(point, 'stock', 'ours')}**",
            ]
        )
    return rows


def _title(result: Json) -> str:
    return f"{result['case']}: {result['about']}"


def _case_rows(results: list[Json], base: str = "") -> list[list[str]]:
    head = ["case", "rows a table", "best stock, s", "ours, s", "stock / ours"]
    rows = [[*head, "ours / floor", "with Spark's exchange / floor", "Comet / ours", "goals"]]
    for result in results:
        point = result["points"][0]
        rows.append(
            [
                f"[{result['case']}]({base}{result['case']}.json)",
                f"{point['rows']:,}",
                seconds(point, "stock", named=True),
                seconds(point, "ours"),
                f"**{over(point, 'stock', 'ours')}**" if best(point, "stock") else "",
                over(point, "ours", "floor"),
                over(point, "ours-plain", "floor"),
                over(point, "comet", "ours"),
                "; ".join(verdict(goal) for goal in result["goals"]),
            ]
        )
    return rows


def _memory_rows(point: Json) -> list[list[str]]:
    rows = [["variant", "s", "spilled to disk, MB", "most memory of a task, MB", "outcome"]]
    for name, facts in point["variants"].items():
        rows.append(
            [
                name,
                seconds(point, name),
                megabytes(facts.get("spilled_disk_bytes")),
                megabytes(facts.get("peak_task_memory_bytes")),
                facts.get("failed", "completed").replace("|", "/"),
            ]
        )
    return rows


def _time_rows(point: Json) -> list[list[str]]:
    names = list(point["variants"])
    first = best(point, names[0])
    rows = [["variant", "s", f"/ {names[0]}", "Exchange", "Sort"]]
    for name in names:
        operators = point["variants"][name].get("operators", {})
        counts = [str(operators.get(operator, 0)) for operator in ("Exchange", "Sort")]
        against = over(point, name, names[0]) if first else ""
        rows.append([name, seconds(point, name), against, *counts])
    return rows


def _curve_rows(result: Json) -> list[list[str]]:
    """Seconds, and what one table or a million of rows costs: a constant where cost is linear."""
    names = list(dict.fromkeys(name for p in result["points"] for name in p["variants"]))
    unit = "a table" if result["axis"] == "tables" else "a million rows"
    head = ["tables", "rows a table", *(f"{name}, s" for name in names)]
    rows = [[*head, f"ours, s {unit}", "best stock / ours"]]
    for point in result["points"]:
        ours = best(point, "ours")
        amount = point["tables"] if result["axis"] == "tables" else point["rows"] / 1e6
        rows.append(
            [
                str(point["tables"]),
                f"{point['rows']:,}",
                *(seconds(point, name) for name in names),
                f"{ours[1] / amount:.3f}" if ours else "",
                over(point, "stock", "ours"),
            ]
        )
    return rows


def _machine_rows(results: list[Json]) -> list[list[str]]:
    """One row for all cases that were run alike."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for result in results:
        machine, versions, settings = (result[k] for k in ("machine", "versions", "settings"))
        key = (
            result["date"],
            f"{settings['cores']} of {machine['cores']}, {machine['cpu']}",
            f"{settings['heap']} of {machine['memory_gb']} GB",
            f"{versions['spark']}, Java {versions['java']}",
            str(settings["rounds"]),
            " ".join(f"{k}={v}" for k, v in settings["conf"].items()),
        )
        groups.setdefault(key, []).append(result["case"])
    head = ["cases", "date", "cores", "heap", "Spark", "rounds", "settings"]
    return [head, *([", ".join(names), *key] for key, names in groups.items())]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
