"""Tell how long the join takes on clusters of other sizes, from tasks that were measured.

    bench/simulate.py [DIRECTORY]       bench/results without one
    bench/simulate.py --skew            joins of two tables with a hot key, instead

It reads the result files of `run.py` in the directory, learns from them what a task of every kind
costs, and lays out the tasks of large tables on the cores of a cluster. It writes
`simulation.json`, `simulation.md` and `simulation.svg`, or the same with `skew-` before. No Spark
is needed, and the same results give the same files. The method and what to believe of it are in
docs/clusters.md, and in docs/skew-figures.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median

import summary
from harness import hot_page, hot_simulation, report, simulation_page
from harness.clusters import MB, Assumptions, Model, model, replay, simulate
from harness.costs import SCAN, Sample, check_machines, samples
from harness.report import Json

RESULTS = Path(__file__).resolve().parent / "results"
SKEW_PAGE = RESULTS.parents[1] / "docs" / "skew-figures.md"

#: Executors and their cores, on which the first author of such an operator measured his.
SHAPES = ((20, 3), (50, 5), (50, 8), (400, 5))
SWEEP = (8, 16, 32, 64, 128, 256, 512, 1000, 2000, 5000, 10_000)
FAMILIES = ("stock", "ours")


@dataclass(frozen=True)
class Run:
    """A run that was measured."""

    case: str
    label: str
    variant: str
    family: str
    rows: int
    partitions: int
    cores: int
    seconds: float
    stages: tuple[Sample, ...]
    #: Milliseconds between the end of a stage's parents and its own start, of every such stage.
    gaps: tuple[float, ...]
    #: Milliseconds of the run before the first and after the last stage.
    beside: float


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    usual = Assumptions()
    parser = argparse.ArgumentParser(
        prog="bench/simulate.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("directory", nargs="?", type=Path, default=RESULTS, help="with results of run.py")
    add("--skew", action="store_true", help="two tables, one with a hot key; of many sizes")
    add("--out", type=Path, help="where to write (the same directory)")
    add("--kind", default="string", help="kind of the tables (%(default)s)")
    add("--tables", type=int, default=4, help="their number (%(default)s)")
    add("--rows", type=float, default=usual.rows, help="rows of each (%(default).0f)")
    add(
        "--split-mb",
        type=float,
        default=usual.split_bytes / MB,
        help="of a file a task (%(default)g)",
    )
    add(
        "--advisory-mb",
        type=float,
        default=usual.advisory_bytes / MB,
        help="shuffled bytes of a partition (%(default)g)",
    )
    add("--node-cores", type=int, default=usual.node_cores, help="cores of a node (%(default)s)")
    add("--gbit", type=float, default=usual.node_gbit, help="network of a node (%(default)g)")
    add("--driver-ms", type=float, help="of the driver for a task (as cluster.py measured)")
    add("--hot-share", type=float, default=0.0, help="of the first table's rows, with one key (0)")
    add("--seed", type=int, default=usual.seed, help="of the draw of slow tasks (%(default)s)")
    options = parser.parse_args(arguments)
    if not 0 <= options.hot_share <= 1:
        parser.error("--hot-share is between 0 and 1")
    return options


def main(arguments: list[str]) -> int:
    """Simulate, and write what came out."""
    options = parse(arguments)
    results = report.load(options.directory)
    if options.skew:
        return simulate_skew(options, results)
    runs = [run for result in results for run in runs_of(result, options.kind, options.tables)]
    used = [result for result in results if result["case"] in {run.case for run in runs}]
    try:
        check_machines(used)
        models, left_out = models_of(runs)
    except ValueError as error:
        print(f"{options.directory}: {error}", file=sys.stderr)
        return 1
    cluster = small_cluster(options.directory)
    given = assumed(options, cluster, measured_overheads(runs, Assumptions()))
    found = {
        "tables": options.tables,
        "kind": options.kind,
        "assumptions": asdict(given),
        "left_out": left_out,
        "small_cluster": cluster,
        "sources": [source(result) for result in used],
        "costs": {
            name: {kind: cost.as_json() for kind, cost in variant.costs.items()}
            for name, (_, variant) in models.items()
        },
        "repeated": [
            repeated(run, models[run.variant][1], given) for run in runs if run.variant in models
        ],
        "clusters": [
            {
                "executors": executors,
                "executor_cores": cores,
                **compare(models, executors * cores, given),
            }
            for executors, cores in SHAPES
        ],
        "sweep": [compare(models, cores, given) for cores in SWEEP],
    }
    directory = write(options, "simulation", found, simulation_page.write(found))
    from plot import draw_simulation

    draw_simulation(directory)
    return 0


def simulate_skew(options: argparse.Namespace, results: Sequence[Json]) -> int:
    """The same for joins with a hot key; the rows and shares are those of the page."""
    given = assumed(options, small_cluster(options.directory), Assumptions())
    try:
        found = hot_simulation.find(results, given)
    except ValueError as error:
        print(f"{options.directory}: {error}", file=sys.stderr)
        return 1
    directory = write(options, "skew-simulation", found, hot_page.write(found))
    from plot import draw_skew_simulation

    draw_skew_simulation(directory)
    if directory.resolve() == RESULTS:
        page = SKEW_PAGE.read_text(encoding="utf-8")
        new = summary.with_block(page, hot_page.block(found), "simulate.py")
        SKEW_PAGE.write_text(new, encoding="utf-8")
    return 0


def assumed(
    options: argparse.Namespace, cluster: Json | None, measured: Assumptions
) -> Assumptions:
    """What is not measured, as the command line has it."""
    given = replace(
        measured,
        rows=round(options.rows),
        split_bytes=round(options.split_mb * MB),
        advisory_bytes=round(options.advisory_mb * MB),
        node_cores=options.node_cores,
        node_gbit=options.gbit,
        hot_share=options.hot_share,
        seed=options.seed,
    )
    if options.driver_ms is not None:
        return replace(given, task_ms=options.driver_ms)
    return replace(given, task_ms=cluster["driver_ms_per_task"]) if cluster else given


def write(options: argparse.Namespace, name: str, found: Json, page: str) -> Path:
    """Write figures and page; return where."""
    directory: Path = options.out or options.directory
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{name}.json").write_text(report.as_json(found), encoding="utf-8")
    (directory / f"{name}.md").write_text(page, encoding="utf-8")
    print(page)
    return directory


def runs_of(result: Json, kind: str, tables: int) -> list[Run]:
    """All runs of a result that can tell about joins of such tables."""
    found = []
    for point in result["points"]:
        if (point["kind"], point["tables"], point["shape"]) != (kind, tables, "all"):
            continue
        if point["heap"]:
            continue
        for name, facts in point["variants"].items():
            stages = facts.get("stages")
            if facts["family"] not in FAMILIES or not stages:
                continue
            ends = {stage["stage"]: stage["end_ms"] for stage in stages}
            found.append(
                Run(
                    case=result["case"],
                    label=point["label"],
                    variant=name,
                    family=facts["family"],
                    rows=point["rows"],
                    partitions=point["partitions"],
                    cores=result["settings"]["cores"],
                    seconds=facts["min"],
                    stages=tuple(samples(stages, tables)),
                    gaps=tuple(
                        stage["start_ms"] - max(ends[parent] for parent in stage["parents"])
                        for stage in stages
                        if stage["parents"]
                    ),
                    beside=facts["min"] * 1000 - max(ends.values()),
                )
            )
    return found


def models_of(runs: Sequence[Run]) -> tuple[dict[str, tuple[str, Model]], list[str]]:
    """Family and model of every variant that was measured at enough scales; what others lack."""
    found: dict[str, tuple[str, Model]] = {}
    reasons: list[str] = []
    for name in dict.fromkeys(run.variant for run in runs):
        mine = [run for run in runs if run.variant == name]
        family = mine[0].family
        alike = [run for run in runs if run.family == family and run.variant != name]
        scans = [sample for run in alike for sample in run.stages if sample.kind == SCAN]
        try:
            found[name] = (family, model([(run.rows, run.stages) for run in mine], scans))
        except ValueError as error:
            reasons.append(f"{name}: {error}")
    missing = [each for each in FAMILIES if each not in {family for family, _ in found.values()}]
    if missing:
        raise ValueError("; ".join([f"not enough measured for {' and '.join(missing)}", *reasons]))
    return found, reasons


def measured_overheads(runs: Sequence[Run], given: Assumptions) -> Assumptions:
    """Time between stages, and beside them, as it was in the runs."""
    return replace(
        given,
        stage_ms=median([gap for run in runs for gap in run.gaps]),
        query_ms=max(0.0, median([run.beside for run in runs])),
    )


def small_cluster(directory: Path) -> Json | None:
    """What `cluster.py` measured, where it was run."""
    path = directory / "cluster.json"
    if not path.exists():
        return None
    found: Json = json.loads(path.read_text(encoding="utf-8"))
    kept = {key: found[key] for key in ("date", "rows", "driver_ms_per_task", "variants")}
    return {**kept, "load": max(point["load_before"] for point in found["measured"].values())}


def source(result: Json) -> Json:
    """Where figures come from."""
    return {
        "case": result["case"],
        "date": result["date"],
        "cpu": result["machine"]["cpu"],
        "cores": result["settings"]["cores"],
        "spark": result["versions"]["spark"],
        "conf": result["settings"]["conf"],
    }


def repeated(run: Run, variant: Model, given: Assumptions) -> Json:
    """A run that was measured, beside what the model says of it."""
    said = replay(run.stages, variant.costs, run.cores, given)
    return {
        "case": run.case,
        "label": run.label,
        "rows": run.rows,
        "partitions": run.partitions,
        "variant": run.variant,
        "measured_s": run.seconds,
        "model_s": round(said, 3),
        "model_over_measured": round(said / run.seconds, 3),
    }


def compare(models: dict[str, tuple[str, Model]], cores: int, given: Assumptions) -> Json:
    """The best stock variant and ours on so many cores."""
    found: Json = {"cores": cores}
    for family in FAMILIES:
        timed = {
            name: simulate(variant, cores, given)
            for name, (of, variant) in models.items()
            if of == family
        }
        best = min(timed, key=lambda name: timed[name]["seconds"])
        found[family] = {"variant": best, **timed[best]}
        found[f"{family}_seconds"] = {name: timed[name]["seconds"] for name in timed}
    found["ratio"] = round(found["stock"]["seconds"] / found["ours"]["seconds"], 3)
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
