"""What was simulated, as a page of tables."""

from __future__ import annotations

from harness.clusters import MB
from harness.report import Json
from harness.tables import table

FAMILIES = ("stock", "ours")


def write(found: Json) -> str:
    """Make the page of what `simulate.py` found."""
    given = found["assumptions"]
    title = f"# {found['tables']} tables of {given['rows']:,} rows on clusters, simulated"
    blocks = [
        title,
        "Written by `bench/simulate.py`; method and limits are in "
        "[docs/clusters.md](../../docs/clusters.md).",
        "## Clusters",
        table(_cluster_rows(found["clusters"], shapes=True)),
        "## Any number of cores",
        table(_cluster_rows(found["sweep"], shapes=False)),
        "![time against cores](simulation.svg)",
        "## Stages",
        f"On {found['clusters'][0]['cores']} and {found['clusters'][-1]['cores']:,} cores. A task "
        "larger or smaller than those that were measured is marked with `*`.",
        table(_stage_rows([found["clusters"][0], found["clusters"][-1]])),
        "## What a task costs",
        table(_cost_rows(found["costs"])),
        *(f"Not simulated: {reason}." for reason in found["left_out"]),
        "## The model beside what was measured",
        table(_repeated_rows(found["repeated"])),
        *_small_cluster(found),
        "## Assumptions",
        table(_assumption_rows(found)),
        "## Measured where and when",
        table(_source_rows(found["sources"])),
    ]
    return "\n\n".join(blocks) + "\n"


def time(seconds: float) -> str:
    """As a reader likes it: 48 s, 5:07 min, 2:31 h."""
    whole = round(seconds)
    if whole < 100:
        return f"{seconds:.1f} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02} min"
    minutes = round(seconds / 60)
    return f"{minutes // 60:,}:{minutes % 60:02} h"


def _terabytes(count: float) -> str:
    return f"{count / 1e12:.2f}"


def _cluster_rows(clusters: list[Json], shapes: bool) -> list[list[str]]:
    head = ["executors x cores" if shapes else "cores", "best stock", "stages", "tasks", "waves"]
    rows = [[*head, "TB shuffled", "time", "ours: stages", "tasks", "waves", "TB shuffled", "time"]]
    rows[0].append("stock / ours")
    for cluster in clusters:
        name = f"{cluster['cores']:,}"
        if shapes:
            name = f"{cluster['executors']} x {cluster['executor_cores']}"
        row = [name, cluster["stock"]["variant"]]
        for family in FAMILIES:
            run = cluster[family]
            row += [str(len(run["stages"])), f"{run['tasks']:,}", f"{run['waves']:,}"]
            row += [_terabytes(run["shuffled_bytes"]), time(run["seconds"])]
        rows.append([*row, f"**{cluster['ratio']:.2f}**"])
    return rows


def _stage_rows(clusters: list[Json]) -> list[list[str]]:
    head = ["cores, variant, stage", "tasks", "rows a task", "longest task", "network at least"]
    rows = [[*head, "begins", "ends"]]
    for cluster in clusters:
        for family in FAMILIES:
            run = cluster[family]
            for stage in run["stages"]:
                low, high = stage["task_rows_measured"]
                mark = "" if low <= stage["task_rows"] <= high else "\\*"
                rows.append(
                    [
                        f"{cluster['cores']:,}, {run['variant']}, {stage['kind']}",
                        f"{stage['tasks']:,}",
                        f"{stage['task_rows']:,}{mark}",
                        time(stage["longest_task_s"]),
                        time(stage["transfer_s"]),
                        time(stage["start_s"]),
                        time(stage["end_s"]),
                    ]
                )
    return rows


def _cost_rows(costs: Json) -> list[list[str]]:
    head = ["variant, stage", "fixed, ms", "a row, µs", "rows a task, measured"]
    rows = [[*head, "measured / line", "tasks / median: 5 %, 95 %, worst"]]
    for name, kinds in costs.items():
        for kind, cost in kinds.items():
            low, high = cost["task_rows_measured"]
            worst = cost["spread"]
            rows.append(
                [
                    f"{name}, {kind}",
                    f"{cost['fixed_ms']:.1f}",
                    f"{cost['row_us']:.3f}",
                    f"{low:,} to {high:,}",
                    "{:.2f} to {:.2f}".format(*cost["measured_over_line"]),
                    f"{worst['p5']:.2f}, {worst['p95']:.2f}, {worst['max']:.2f}",
                ]
            )
    return rows


def _repeated_rows(repeated: list[Json]) -> list[list[str]]:
    rows = [
        [
            "case, variant",
            "rows a table",
            "partitions",
            "measured, s",
            "model, s",
            "model / measured",
        ]
    ]
    for run in repeated:
        rows.append(
            [
                f"{run['case']}, {run['variant']}",
                f"{run['rows']:,}",
                str(run["partitions"]),
                f"{run['measured_s']:.2f}",
                f"{run['model_s']:.2f}",
                f"{run['model_over_measured']:.2f}",
            ]
        )
    return rows


def _small_cluster(found: Json) -> list[str]:
    cluster = found["small_cluster"]
    if not cluster:
        return []
    head = ["variant", "1 worker, s", "2 workers, s", "simulated from their own tasks, s"]
    keys = ("one_s", "two_s", "model_two_own_tasks_s", "faster", "model_faster")
    head += ["times as fast", "simulated from the tasks of one"]
    rows = [
        [name, *(f"{figures[key]:.2f}" for key in keys)]
        for name, figures in cluster["variants"].items()
    ]
    about = f"Workers of one core each, tables of {cluster['rows']:,} rows, {cluster['date']}."
    about += f" Load of the machine before: {cluster['load']:.1f}."
    return ["## A cluster of two workers", about, table([head, *rows])]


def _assumption_rows(found: Json) -> list[list[str]]:
    given = found["assumptions"]
    cluster = found["small_cluster"] or {}
    measured = "measured" if given["task_ms"] == cluster.get("driver_ms_per_task") else "assumed"
    return [
        ["what", "value"],
        ["rows of a table", f"{given['rows']:,}"],
        ["a scan's task reads, MiB of a file", f"{given['split_bytes'] / MB:g}"],
        [
            "a shuffled partition, MiB (less, where cores were idle otherwise, but at least "
            f"{given['least_bytes'] / MB:g})",
            f"{given['advisory_bytes'] / MB:g}",
        ],
        ["cores of a node", str(given["node_cores"])],
        ["network of a node, Gbit/s", f"{given['node_gbit']:g}"],
        [f"driver, ms a task ({measured})", f"{given['task_ms']:.2f}"],
        ["driver, ms between stages (measured)", f"{given['stage_ms']:.0f}"],
        ["driver, ms beside all stages (measured)", f"{given['query_ms']:.0f}"],
        ["rows of the first table with one hot key, share", f"{given['hot_share']:g}"],
        ["seed", str(given["seed"])],
    ]


def _source_rows(sources: list[Json]) -> list[list[str]]:
    rows = [["case", "date", "cores", "CPU", "Spark", "settings"]]
    for each in sources:
        conf = " ".join(f"{key}={value}" for key, value in each["conf"].items())
        rows.append(
            [each["case"], each["date"], str(each["cores"]), each["cpu"], each["spark"], conf]
        )
    return rows
