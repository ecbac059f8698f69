"""Measure the N-way join beside everything else that gives the same answer.

    bench/run.py                       most cases with a fortieth of the rows: a look
    bench/run.py --full                every case as the goals want it, for bench/results
    bench/run.py --full n4-string-16   one case; patterns like 'n4-*' do too
    bench/run.py plan-time             what optimizing and planning take: bench/plan_time.py

How to read what comes out is in bench/README.md.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any

import plan_time
import pyspark
from harness import facts, report, sessions
from harness.case import FULL_ROWS, QUICK_ROWS, Case
from harness.cases import CASES, select
from harness.measure import Options, measure, progress
from harness.sessions import SessionSpec
from harness.variants import VARIANTS
from harness.workers import Pool, WorkerError, python_of
from harness.workspace import BusyError, workspace

BENCH = Path(__file__).resolve().parent
PLAN_TIME = "plan-time"
GB = 2**30


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
    add(
        "cases",
        nargs="*",
        metavar="CASE",
        help="names or patterns; without one all with --full, else most",
    )
    add("--full", action="store_true", help=f"{FULL_ROWS:,} rows a table, not {QUICK_ROWS:,}")
    add("--rows", type=int, help="rows of a table, instead")
    add("--rounds", type=int, help="counted rounds after the warm-up (3 with --full, else 1)")
    add("--cores", type=int, default=os.cpu_count() or 1, help="cores for Spark (all)")
    add("--heap", default=default_heap(), help="heap of a session (%(default)s)")
    add("--comet-heap", default="4g", help="heap of the session with Comet (%(default)s)")
    add("--comet-offheap", help="its memory off the heap (what it lacks in heap)")
    add("--comet-jar", type=Path, help="Comet's jar, instead of the one from Maven")
    add("--no-comet", action="store_true", help="leave Comet out")
    add("--variants", default="", metavar="A,B", help="only these, where a case has them")
    add(
        "--drop-slow",
        type=float,
        default=1.5,
        metavar="FACTOR",
        help="run a stock variant no more if there are several and its warm-up took this many "
        "times that of the best one (1.5; 0: never)",
    )
    add("--conf", action="append", default=[], metavar="KEY=VALUE", help="Spark setting for all")
    add(
        "--beside",
        action="append",
        default=[],
        metavar="LINE",
        help="another line of Spark that takes its turns, as 4.2, with one answer for all; made by "
        "`make environment jar SPARK=LINE`. Sessions are more: mind --heap and --no-comet",
    )
    add("--timeout", type=float, default=1800, help="seconds until a run is given up (1800)")
    add("--cache", type=Path, default=BENCH.parent / ".cache" / "bench", help="where data is kept")
    add(
        "--results",
        type=Path,
        help="where results go (with --full alone bench/results, else the cache)",
    )
    options = parser.parse_args(arguments)
    options.rounds = options.rounds or (3 if options.full else 1)
    unknown = [name for name in options.variants.split(",") if name and name not in VARIANTS]
    if unknown:
        parser.error(f"there is no variant {', '.join(unknown)}")
    if any("=" not in setting for setting in options.conf):
        parser.error("--conf wants KEY=VALUE")
    lacking = [line for line in options.beside if not Path(python_of(line)).exists()]
    if lacking:
        line = lacking[0]
        parser.error(f"no environment of Spark {line}: make environment jar SPARK={line}")
    try:
        options.selected = select(options.cases, look=not options.full)
    except ValueError as error:
        parser.error(str(error))
    in_one_session = [case.name for case in options.selected if case.repeats]
    if options.beside and in_one_session:
        parser.error(f"--beside: the turns of {in_one_session[0]} are those of one session")
    return options


def default_heap() -> str:
    """10 GB, or what leaves room for Comet's session and the cache of the file system."""
    return f"{max(1, min(10, int(facts.memory_bytes() / GB * 0.43)))}g"


def _offheap(heap: str, comet_heap: str) -> str:
    """As much memory in all as the plain session has."""
    units = {"g": 1024, "m": 1}
    heap_mb, comet_mb = (int(text[:-1]) * units[text[-1].lower()] for text in (heap, comet_heap))
    return f"{max(1024, heap_mb - comet_mb)}m"


def main(arguments: list[str]) -> int:
    """Run the cases; 1 if an answer or a plan was wrong."""
    if PLAN_TIME in arguments:
        return plan_time.main([argument for argument in arguments if argument != PLAN_TIME])
    options = parse(arguments)
    cache: Path = options.cache.resolve()
    try:
        with workspace(cache, options.beside) as jars:
            return _run(options, cache, jars)
    except BusyError as error:
        progress(str(error))
        return 2


def _run(options: argparse.Namespace, cache: Path, jars: dict[str, str]) -> int:
    comet_jar = _comet_jar(options, cache)
    spec = SessionSpec(
        kind="plain",
        cache=str(cache),
        cores=options.cores,
        heap=options.heap,
        offheap=options.comet_offheap or _offheap(options.heap, options.comet_heap),
        comet_jar=str(comet_jar),
        conf=dict(setting.split("=", 1) for setting in options.conf),
        jars=jars,
    )
    how = Options(
        cache=cache,
        rows=options.rows or (FULL_ROWS if options.full else QUICK_ROWS),
        rounds=options.rounds,
        drop_slow=options.drop_slow,
        comet=bool(comet_jar),
        only=tuple(filter(None, options.variants.split(","))),
        look=not options.full,
        beside=tuple(options.beside),
    )
    # One line's figures are not to be taken for another's by what reads bench/results.
    keep = options.full and not options.beside
    directory = options.results or (BENCH / "results" if keep else cache / "results")
    load = os.getloadavg()[0]
    if load > 0.4 * options.cores:
        progress(f"The load of this machine is {load:.1f}: something else is running.")
    failures = 0
    began = time.monotonic()
    with ExitStack() as sessions_of_case:
        pool: Pool | None = None
        shared: str | None = None
        for number, case in enumerate(options.selected, 1):
            minutes = (time.monotonic() - began) / 60
            progress(f"--- {case.name} ({number} of {len(options.selected)}, {minutes:.1f} min)")
            session = case.session if options.full else _session_of_look(case, how)
            if pool is None or session is None or session != shared:
                # Sessions of its own, or of cases like it: no figure depends on others before it.
                sessions_of_case.close()
                pool = Pool(spec, options.comet_heap, options.timeout)
                sessions_of_case.enter_context(pool)
                shared = session
            try:
                found = _run_case(case, spec, how, options, pool)
            except WorkerError as error:
                progress(f"{case.name}: {error}; logs are in {cache / 'logs'}")
                failures += 1
                pool = None
                continue
            path = report.write(found, directory)
            print(report.describe(found), flush=True)
            progress(f"written to {path}")
            failures += len(found["problems"])
    progress(f"{(time.monotonic() - began) / 60:.1f} min; bench/summary.py and bench/plot.py show")
    return 1 if failures else 0


def _session_of_look(case: Case, how: Options) -> str:
    """All cases share one: to warm up a JVM takes longer than a case. Comet's goes when it can."""
    with_comet = how.comet and any(VARIANTS[name].session == "comet" for name in case.variants)
    return "look with Comet" if with_comet else "look"


def _comet_jar(options: argparse.Namespace, cache: Path) -> str:
    """Path of Comet's jar; nothing if no case wants it or it is not to be had."""
    only = set(filter(None, options.variants.split(",")))
    wanted = {name for case in options.selected for name in case.variants}
    wanted &= only or wanted
    if options.no_comet or all(VARIANTS[name].session != "comet" for name in wanted):
        return ""
    if options.comet_jar:
        return str(options.comet_jar.resolve())
    if not pyspark.__version__.startswith(sessions.COMET_SPARK):
        progress(f"Without Comet, whose jar is one for Spark {sessions.COMET_SPARK}")
        return ""
    try:
        return str(sessions.fetch_comet(cache))
    except (OSError, CalledProcessError) as error:
        progress(f"Without Comet: {error}")
        return ""


def _run_case(
    case: Case, spec: SessionSpec, how: Options, options: argparse.Namespace, pool: Pool
) -> dict[str, Any]:
    partitions = spec.conf.get("spark.sql.shuffle.partitions")
    if partitions is not None:
        points = tuple(replace(point, partitions=int(partitions)) for point in case.points)
        case = replace(case, points=points)
    measured = measure(case, pool, how)
    heap = case.points[0].heap
    versions = pool.ask("plain", heap, "versions")
    if how.comet and any(VARIANTS[name].session == "comet" for name in case.variants):
        versions["comet"] = sessions.COMET.rsplit(":", 1)[1]
    for line in how.beside:
        versions[f"beside: spark {line}"] = pool.ask("plain", heap, "versions", line=line)["spark"]
    settings = {
        "cores": spec.cores,
        "heap": heap or spec.heap,
        "comet_heap": options.comet_heap,
        "comet_offheap": spec.offheap,
        "rounds": how.rounds,
        "drop_slow": how.drop_slow,
        "conf": spec.conf,
    }
    about = {"machine": facts.machine(), "versions": versions, "settings": settings}
    return report.result(case, measured, about)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
