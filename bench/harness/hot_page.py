"""What was simulated of joins with a hot key: a page, and a part of docs/skew-figures.md."""

from __future__ import annotations

from harness.clusters import MB
from harness.hot_clusters import WAYS
from harness.hot_simulation import COMPARED_CORES, PLOTTED_ROWS
from harness.report import Json
from harness.simulation_page import time
from harness.tables import table

NAMES = {
    "stock": "stock Spark",
    "residual": "split, one residual",
    "marking": "split, keys marked",
    "even": "no hot key",
}


def write(found: Json) -> str:
    """Make the page of what `simulate.py --skew` found."""
    blocks = [
        "# A full outer join with a hot key on clusters, simulated",
        "Written by `bench/simulate.py --skew`; method and limits are in "
        "[docs/skew-figures.md](../../docs/skew-figures.md#on-a-cluster).",
        "## Where the residual is the limit",
        table(_limit_rows(found["joins"])),
        "![time against cores](skew-simulation.svg)",
        "## Any number of cores",
    ]
    for join in found["joins"]:
        blocks += [f"### {_title(join)}", table(_sweep_rows(join))]
    blocks += [
        "## What a task costs",
        table(_cost_rows(found["costs"])),
        "A row of the hot key costs the third figure where one task joins all of them (stock), and "
        "where the residual looks whether the others have its key (ours).",
        _marking(found["costs"]["ours"]["mark_factor"]),
        *(f"Not used: {reason}." for reason in found["left_out"]),
        "## The model beside what was measured",
        table(_repeated_rows(found["repeated"])),
        "## Assumptions",
        table(_assumption_rows(found)),
        "## Measured where and when",
        table(_source_rows(found["sources"])),
    ]
    return "\n\n".join(blocks) + "\n"


def block(found: Json) -> str:
    """For docs/skew-figures.md: the table and the plot."""
    base = "../bench/results/skew-simulation"
    plot = f"![time against cores, simulated]({base}.svg)"
    more = f"Other numbers of cores, and all that went into it: [skew-simulation.md]({base}.md)."
    return f"{table(_limit_rows(found['joins']))}\n\n{plot}\n\n{more}"


def _title(join: Json) -> str:
    return f"{join['rows']:,} rows, {join['share']:.0%} with the hot key"


def _limit_rows(joins: list[Json]) -> list[list[str]]:
    head = ["rows, hot key", "hot rows, GB", "pieces", "marking tasks", "stock's longest task"]
    head += ["residual", "longest piece", "residual decides from"]
    head += [f"{COMPARED_CORES:,} cores: {NAMES[way]}" for way in WAYS]
    rows = [[*head, "one residual / marked"]]
    for join in joins:
        at = join["compared"]
        split, marked = at["residual"], at["marking"]
        limit = join["residual_decides_from"]
        decides = f"{limit:,} cores" if limit else ""
        row = [
            f"{join['rows']:,}, {join['share']:.0%}",
            f"{join['hot_bytes'] / 1e9:.1f}",
            str(split["slices"]) if split["slices"] else "not split",
            str(marked["marks"]) if marked["marks"] else "not marked",
            time(at["stock"]["longest_task_s"]),
            time(split["residual_s"]) if split["residual_s"] else "",
            time(split["longest_piece_s"]) if split["longest_piece_s"] else "",
            decides,
        ]
        row += [time(at[way]["seconds"]) for way in WAYS]
        rows.append([*row, f"**{split['seconds'] / marked['seconds']:.2f}**"])
    return rows


def _sweep_rows(join: Json) -> list[list[str]]:
    head = ["cores", *(NAMES[way] for way in WAYS), "stock / one residual"]
    rows = [[*head, "one residual / marked", "marked / no hot key"]]
    for found in join["sweep"]:
        seconds = {way: found[way]["seconds"] for way in WAYS}
        rows.append(
            [
                f"{found['cores']:,}",
                *(time(seconds[way]) for way in WAYS),
                f"{seconds['stock'] / seconds['residual']:.2f}",
                f"{seconds['residual'] / seconds['marking']:.2f}",
                f"{seconds['marking'] / seconds['even']:.2f}",
            ]
        )
    return rows


def _cost_rows(costs: Json) -> list[list[str]]:
    head = ["variant", "fixed, ms", "a row, µs", "a hot row, µs", "a row of a piece, µs"]
    rows = [[*head, "a scanned row, µs", "rows a task, measured", "worst task / median"]]
    for family, cost in costs.items():
        piece = cost["piece_row_us"]
        rows.append(
            [
                family,
                f"{cost['fixed_ms']:.1f}",
                f"{cost['row_us']:.3f}",
                f"{cost['hot_row_us']:.3f}",
                "" if piece is None else f"{piece:.3f}",
                f"{cost['scan_row_us']:.3f}",
                "{:,} to {:,}".format(*cost["task_rows_measured"]),
                f"{cost['worst_task']:.2f}",
            ]
        )
    return rows


def _marking(factor: float | None) -> str:
    if factor is None:
        return "No run has marked keys: what that costs is calculated from the other costs."
    return f"Tasks that mark keys took {factor:.2f} times what the other costs make of them."


def _repeated_rows(repeated: list[Json]) -> list[list[str]]:
    rows = [["case, variant", "rows", "measured, s", "model, s", "model / measured"]]
    for run in repeated:
        rows.append(
            [
                f"{run['case']}, {run['variant']}",
                f"{run['rows']:,}",
                f"{run['measured_s']:.2f}",
                f"{run['model_s']:.2f}",
                f"{run['model_over_measured']:.2f}",
            ]
        )
    return rows


def _assumption_rows(found: Json) -> list[list[str]]:
    given, rules, size = found["assumptions"], found["rules"], found["row_bytes"]
    of_file, shuffled = ("{:.1f} and {:.1f}".format(*size[key]) for key in ("file", "shuffled"))
    return [
        ["what", "value"],
        ["rows of the other table, for one of the table with the hot key", "1/4"],
        ["bytes of a row in the file: table with the hot key, other table", of_file],
        ["bytes of a row in the shuffle", shuffled],
        ["a scan's task reads, MiB of a file", f"{given['split_bytes'] / MB:g}"],
        ["a shuffled partition, and a slice, MiB", f"{given['advisory_bytes'] / MB:g}"],
        ["a partition is skewed from, MiB", f"{rules['threshold_bytes'] / MB:g}"],
        ["and from so many times the median on", f"{rules['factor']:g}"],
        ["slices at most", str(rules["max_slices"])],
        ["work of a split partition at most, times that of one task", f"{rules['max_reread']:g}"],
        ["keys are marked where that is so many times shorter", f"{rules['marking_gain']:g}"],
        ["cores of a node", str(given["node_cores"])],
        ["network of a node, Gbit/s", f"{given['node_gbit']:g}"],
        ["driver, ms a task", f"{given['task_ms']:.2f}"],
        ["driver, ms between stages (measured)", f"{given['stage_ms']:.0f}"],
        ["driver, ms beside all stages (measured)", f"{given['query_ms']:.0f}"],
        ["seed", str(given["seed"])],
        ["the plot is of rows", f"{PLOTTED_ROWS:,}"],
    ]


def _source_rows(sources: list[Json]) -> list[list[str]]:
    rows = [["case", "date", "cores", "CPU", "Spark", "load before"]]
    for each in sources:
        load = f"{each['load']:.1f}"
        rows.append(
            [each["case"], each["date"], str(each["cores"]), each["cpu"], each["spark"], load]
        )
    return rows
