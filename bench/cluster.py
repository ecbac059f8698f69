"""Compare the simulator with a real cluster, the smallest: a worker, then two, of a core each.

    bench/cluster.py [DIRECTORY]        writes cluster.json to bench/results without one

Master and workers of Spark's standalone mode are started on this machine and stopped at the end.
The variants run on one worker; from the tasks measured there the simulator says how much faster
two are, and then two are measured. Executors are processes of their own here: what tasks need and
return goes over sockets. Also measured is the CPU time of the driver's busiest thread for a task,
which is why `simulate.py` reads the result.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

from harness import facts, report
from harness.case import CHAINS, Case, Point
from harness.costs import samples
from harness.measure import Options, measure, progress
from harness.report import Json
from harness.schedule import Driver, Stage, makespan
from harness.sessions import SessionSpec
from harness.standalone import Standalone
from harness.workers import Pool
from harness.workspace import BusyError, workspace

BENCH = Path(__file__).resolve().parent
POINT = Point("N=4", partitions=8)
CASE = Case("cluster", "4 tables on a standalone cluster", (POINT,), (*CHAINS, "ours"))
WORKERS = (1, 2)

#: Tasks of the empty jobs; the first is for the driver to get warm.
EMPTY_TASKS = (1000, 3000)


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="bench/cluster.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("directory", nargs="?", type=Path, default=BENCH / "results", help="for cluster.json")
    add("--rows", type=int, default=300_000, help="of a table (%(default)s)")
    add("--rounds", type=int, default=2, help="counted rounds after the warm-up (%(default)s)")
    add("--memory", default="1g", help="heap of an executor, and of the driver (%(default)s)")
    add("--timeout", type=float, default=300, help="seconds until a run is given up (300)")
    add("--cache", type=Path, default=BENCH.parent / ".cache" / "bench", help="where data is kept")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """Measure on one worker and on two; 1 if an answer or a plan was wrong."""
    options = parse(arguments)
    cache: Path = options.cache.resolve()
    # Not to leave a cluster behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        with workspace(cache):
            found = _run(options, cache)
    except BusyError as error:
        progress(str(error))
        return 2
    options.directory.mkdir(parents=True, exist_ok=True)
    path = options.directory / "cluster.json"
    path.write_text(report.as_json(found), encoding="utf-8")
    print(describe(found))
    progress(f"written to {path}")
    return 1 if found["problems"] else 0


def _run(options: argparse.Namespace, cache: Path) -> Json:
    how = Options(cache=cache, rows=options.rows, rounds=options.rounds, drop_slow=0, comet=False)
    if os.getloadavg()[0] > 1:
        progress("Something else is running: two workers will not be twice as fast as one.")
    points: dict[int, Json] = {}
    # Room for what an executor needs beside its heap.
    megabytes = {"g": 1024, "m": 1}[options.memory[-1].lower()] * int(options.memory[:-1])
    with Standalone(cache / "standalone", f"{megabytes + 512}m") as cluster:
        for workers in WORKERS:
            cluster.add_worker()
            progress(f"--- {workers} worker{'s' if workers > 1 else ''}")
            spec = SessionSpec(
                kind="plain",
                cache=str(cache),
                cores=workers,
                heap=options.memory,
                offheap="0",
                conf=_settings(cluster, options.memory),
            )
            with Pool(spec, options.memory, options.timeout) as pool:
                (points[workers],) = measure(CASE, pool, how)
                versions = pool.ask("plain", None, "versions")
                if workers == WORKERS[-1]:
                    warm, counted = EMPTY_TASKS
                    pool.ask("plain", None, "driver_cpu", tasks=warm)
                    driver = pool.ask("plain", None, "driver_cpu", tasks=counted)
    task_ms = driver["seconds"] / counted * 1000
    return {
        "about": CASE.about,
        "date": date.today().isoformat(),
        "machine": facts.machine(),
        "versions": versions,
        "rows": options.rows,
        "driver_ms_per_task": round(task_ms, 3),
        "driver_thread": driver["thread"],
        "variants": compare(points[1], points[2], task_ms),
        "problems": [problem for point in points.values() for problem in point["problems"]],
        "measured": {str(workers): point for workers, point in points.items()},
    }


def _settings(cluster: Standalone, memory: str) -> dict[str, str]:
    return {
        "spark.master": cluster.url,
        "spark.executor.cores": "1",
        "spark.executor.memory": memory,
        # What makes one executor's tasks comparable with another's: no help from other cores.
        "spark.executor.extraJavaOptions": (
            f"-Xms{memory} -XX:+UseSerialGC -XX:ActiveProcessorCount=1"
        ),
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        # As many scan tasks on one core as on two.
        "spark.sql.files.minPartitionNum": "4",
    }


def compare(one: Json, two: Json, task_ms: float) -> Json:
    """How much faster two workers are, measured and by the simulator from one worker's tasks.

    And how long two take by the simulator, if their own tasks are given to it.
    """
    found: Json = {}
    for name, facts_of_one in one["variants"].items():
        facts_of_two = two["variants"][name]
        if not (facts_of_one.get("stages") and facts_of_two.get("stages")):
            continue
        simulated = [simulated_seconds(facts_of_one, workers, task_ms) for workers in WORKERS]
        # Tasks that got slower beside each other are the machine's doing, not the scheduler's.
        own = simulated_seconds(facts_of_two, 2, task_ms)
        found[name] = {
            "one_s": facts_of_one["min"],
            "two_s": facts_of_two["min"],
            "model_one_s": round(simulated[0], 3),
            "model_two_s": round(simulated[1], 3),
            "model_two_own_tasks_s": round(own, 3),
            "faster": round(facts_of_one["min"] / facts_of_two["min"], 3),
            "model_faster": round(simulated[0] / simulated[1], 3),
        }
    return found


def simulated_seconds(run: dict[str, Any], cores: int, task_ms: float) -> float:
    """Seconds of a run's own tasks on so many cores, with its own time between stages."""
    stages = sorted(run["stages"], key=lambda stage: int(stage["stage"]))
    ends = {stage["stage"]: stage["end_ms"] for stage in stages}
    gaps = [s["start_ms"] - max(ends[p] for p in s["parents"]) for s in stages if s["parents"]]
    driver = Driver(task_ms / 1000, median(gaps or [0]) / 1000)
    tasks = [
        Stage([ms / 1000 for ms in sample.task_ms], sample.parents)
        for sample in samples(stages, POINT.tables)
    ]
    beside: float = run["min"] - max(ends.values()) / 1000
    return makespan(tasks, cores, driver) + beside


def describe(found: Json) -> str:
    """The printed form."""
    head = ["variant", "1 worker, s", "2 workers, s", "of its tasks", "faster", "simulated"]
    rows = [head]
    for name, figures in found["variants"].items():
        rows.append(
            [
                name,
                *(f"{figures[key]:.2f}" for key in ("one_s", "two_s", "model_two_own_tasks_s")),
                *(f"{figures[key]:.2f}" for key in ("faster", "model_faster")),
            ]
        )
    lines = [f"\n4 tables of {found['rows']:,} rows on a standalone cluster", report.as_text(rows)]
    load = found["measured"][str(WORKERS[-1])]["load_before"]
    lines.append(f"load of the machine before two workers: {load:.1f}")
    about = f"CPU time a task, in its busiest thread ({found['driver_thread']})"
    lines.append(f"driver: {found['driver_ms_per_task']:.2f} ms of {about}")
    return "\n".join([*lines, *(f"PROBLEM {problem}" for problem in found["problems"])])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
