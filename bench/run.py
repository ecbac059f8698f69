"""Measure the join of N tables beside all other ways to get the same answer.

    bench/run.py                       most cases with 100,000 rows a table: a quick look
    bench/run.py --full n4-string-16   4,000,000 rows a table, as in docs/performance.md
    bench/run.py plan-time             the time for optimizing and planning: bench/plan_time.py

bench/README.md explains the output.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import plan_time
from harness import facts, report, sessions, worker
from harness.alone import alone
from harness.case import FULL_ROWS, QUICK_ROWS, Case
from harness.cases import CASES, select
from harness.measure import Options, available, measure, progress
from harness.peers import PACKAGES
from harness.pool import Pool, SessionLostError
from harness.sessions import SessionSpec
from harness.variants import DUCKDB, VARIANTS

BENCH = Path(__file__).resolve().parent
PLAN_TIME = "plan-time"


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    width = max(len(case.name) for case in CASES)
    listed = "\n".join(f"  {case.name:{width}}  {case.about}" for case in CASES)
    parser = argparse.ArgumentParser(
        prog="bench/run.py",
        description=__doc__,
        epilog=f"cases:\n{listed}\n\nvariants:\n  {', '.join(VARIANTS)}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    # 10 GB, or what leaves room for Comet's session and the cache of the file system.
    heap = max(1, min(10, int(facts.memory_bytes() / 2**30 * 0.43)))
    add("cases", nargs="*", metavar="CASE", help="names or patterns; none: all, or most if quick")
    add("--full", action="store_true", help=f"{FULL_ROWS:,} rows a table, not {QUICK_ROWS:,}")
    add("--rows", type=int, help="rows of a table, instead")
    add("--rounds", type=int, help="counted rounds after the warm-up (3 with --full, else 1)")
    add("--cores", type=int, default=os.cpu_count() or 1, help="cores for Spark (all)")
    add("--heap", default=f"{heap}g", help="heap of a session, in GB (%(default)s)")
    add("--no-comet", action="store_true", help="leave Comet out")
    add("--no-peers", action="store_true", help="leave other packages with as-of joins out")
    add("--variants", default="", metavar="A,B", help="only these, where a case has them")
    add("--conf", action="append", default=[], metavar="KEY=VALUE", help="Spark setting for all")
    add("--timeout", type=float, default=1800, help="seconds until a run is given up (1800)")
    add("--cache", type=Path, default=BENCH.parent / ".cache" / "bench", help="for the tables")
    add("--results", type=Path, help="for the results (bench/results with --full, else the cache)")
    options = parser.parse_args(arguments)
    options.rounds = options.rounds or (3 if options.full else 1)
    options.only = tuple(filter(None, options.variants.split(",")))
    unknown = [name for name in options.only if name not in VARIANTS]
    if unknown:
        parser.error(f"there is no variant {', '.join(unknown)}")
    if any("=" not in setting for setting in options.conf):
        parser.error("--conf needs KEY=VALUE")
    try:
        options.selected = select(options.cases, look=not options.full)
    except ValueError as error:
        parser.error(str(error))
    return options


def main(arguments: list[str]) -> int:
    """Run the cases; 1 if an answer or a plan was wrong."""
    if PLAN_TIME in arguments:
        return plan_time.main([argument for argument in arguments if argument != PLAN_TIME])
    options = parse(arguments)
    cache: Path = options.cache.resolve()
    with alone(cache) as is_alone:
        return _run(options, cache) if is_alone else 2


def _run(options: argparse.Namespace, cache: Path) -> int:
    wanted = [VARIANTS[v] for case in options.selected for v in options.only or case.variants]
    if any(variant.family == DUCKDB for variant in wanted):
        available(sessions.fetch_duckdb, cache)
    has_peers = not options.no_peers and any(variant.family in PACKAGES for variant in wanted)
    has_comet = not options.no_comet and any(variant.session == "comet" for variant in wanted)
    comet_jar = available(sessions.fetch_comet, cache) if has_comet else ""
    spec = SessionSpec(
        cache,
        options.cores,
        options.heap,
        dict(setting.split("=", 1) for setting in options.conf),
        comet_jar,
    )
    how = Options(
        cache=cache,
        rows=options.rows or (FULL_ROWS if options.full else QUICK_ROWS),
        rounds=options.rounds,
        comet=bool(comet_jar),
        peers=has_peers and bool(available(sessions.fetch_peers, cache)),
        only=options.only,
        look=not options.full,
    )
    directory = options.results or (BENCH / "results" if options.full else cache / "results")
    load = os.getloadavg()[0]
    if load > 0.4 * options.cores:
        progress(f"The load of this machine is {load:.1f}: something else is running.")
    failures = 0
    began = time.monotonic()
    with Pool(spec, options.timeout) as pool:
        for number, case in enumerate(options.selected, 1):
            minutes = (time.monotonic() - began) / 60
            progress(f"--- {case.name} ({number} of {len(options.selected)}, {minutes:.1f} min)")
            if options.full:
                # Sessions of its own: its figures do not depend on earlier cases.
                pool.close()
            try:
                found = _run_case(case, spec, how, pool)
            except SessionLostError as error:
                progress(f"{case.name}: {error}; the logs are in {cache / 'logs'}")
                failures += 1
                continue
            path = report.write(found, directory)
            print(report.describe(found), flush=True)
            progress(f"written to {path}")
            failures += len(found["problems"])
    progress(f"{(time.monotonic() - began) / 60:.1f} min; bench/summary.py makes tables of it")
    return 1 if failures else 0


def _run_case(case: Case, spec: SessionSpec, how: Options, pool: Pool) -> dict[str, Any]:
    partitions = spec.conf.get("spark.sql.shuffle.partitions")
    if partitions is not None:
        points = tuple(replace(point, partitions=int(partitions)) for point in case.points)
        case = replace(case, points=points)
    measured = measure(case, pool, how)
    versions = pool.ask("plain", worker.versions)
    if how.comet and any(VARIANTS[name].session == "comet" for name in case.variants):
        versions["comet"] = sessions.COMET[sessions.LINE][0].rsplit(":", 1)[1]
    settings = {
        "cores": spec.cores,
        "heap": spec.heap,
        "rounds": how.rounds,
        "conf": spec.conf,
    }
    about = {"machine": facts.machine(), "versions": versions, "settings": settings}
    return report.result(case, measured, about)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
