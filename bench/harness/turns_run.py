"""The command line of the benchmarks whose queries are in SQL."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterable
from datetime import date
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from harness import facts, sessions, worker
from harness.alone import alone
from harness.measure import available, progress
from harness.pool import Pool
from harness.questions import WAYS, Question, Way
from harness.report import as_json
from harness.sessions import SessionSpec
from harness.tpc import without_limit
from harness.turns import Turns
from harness.turns_report import describe, totals

BENCH = Path(__file__).resolve().parents[1]
#: Spark's default.
BROADCAST_BYTES = 10 * 2**20

Groups = dict[str, list[Question]]

_FETCHES = {"duckdb": sessions.fetch_duckdb, "polars": sessions.fetch_polars}


def parse(
    name: str,
    about: str | None,
    scale: float,
    arguments: list[str],
    ways: str = "stock,stock-hash,ours",
) -> argparse.Namespace:
    """Read the command line; `scale` is the usual scale factor, `ways` the usual ways."""
    parser = argparse.ArgumentParser(
        prog=f"bench/{name}.py",
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    # Two sessions, and room for the cache of the file system.
    heap = max(1, min(10, int(facts.memory_bytes() / 2**30 * 0.25)))
    add("queries", nargs="*", metavar="QUERY", help="names or patterns; none: all")
    add("--scale", type=float, default=scale, help="scale factor (%(default)s)")
    add("--data", type=Path, help="folder of the tables, made if missing (in the cache)")
    add("--rounds", type=int, default=3, help="counted rounds after the warm-up (3)")
    add("--no-warm-up", action="store_true", help="the check of the answer is the only warm-up")
    add("--no-broadcast", action="store_true", help="without broadcasts")
    add("--ways", default=ways, help=f"of {','.join(WAYS)} (%(default)s)")
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="setting of ours")
    add("--conf", action="append", default=[], metavar="KEY=VALUE", help="Spark setting for all")
    add("--cores", type=int, default=os.cpu_count() or 1, help="cores for Spark (all)")
    add("--heap", default=f"{heap}g", help="heap of a session, in GB (%(default)s)")
    add("--timeout", type=float, default=1800, help="seconds until a run is given up (1800)")
    add("--cache", type=Path, default=BENCH.parent / ".cache" / "bench", help="for the tables")
    add(
        "--keep",
        action="store_true",
        help="write groups of which all queries have run to bench/results",
    )
    options = parser.parse_args(arguments)
    options.cache = options.cache.resolve()
    options.data = (
        options.data or options.cache / "data" / f"{name}-sf{options.scale:g}"
    ).resolve()
    options.ways = tuple(options.ways.split(","))
    if unknown := [way for way in options.ways if way not in WAYS]:
        parser.error(f"there is no way {', '.join(unknown)}")
    if any("=" not in setting for setting in (*options.set, *options.conf)):
        parser.error("a setting needs KEY=VALUE")
    return options


def defaults(options: argparse.Namespace) -> dict[str, str]:
    """The limit of broadcasts, for queries that say nothing of it."""
    limit = "-1" if options.no_broadcast else str(BROADCAST_BYTES)
    return {"spark.sql.autoBroadcastJoinThreshold": limit}


def benchmark(name: str, options: argparse.Namespace, make: Callable[[], Groups]) -> int:
    """Run the queries that `make` returns, in groups; 1 if an answer or a plan was wrong."""
    with alone(options.cache) as is_alone:
        if not is_alone:
            return 2
        groups = make()
        names = [each.name for questions in groups.values() for each in questions]
        for pattern in options.queries:
            if not any(fnmatch(each, pattern) for each in names):
                raise SystemExit(f"there is no query {pattern!r}; the queries are {names}")
        chosen = {
            group: [q for q in questions if _is_in(q.name, options.queries)]
            for group, questions in groups.items()
        }
        whole = [group for group, questions in groups.items() if chosen[group] == questions]
        return _run(name, options, chosen, whole)


def _is_in(name: str, patterns: Iterable[str]) -> bool:
    return not patterns or any(fnmatch(name, pattern) for pattern in patterns)


def _run(name: str, options: argparse.Namespace, groups: Groups, whole: list[str]) -> int:
    ways = _ways(options)
    has_comet = any(way.session == "comet" for way in ways)
    jar = available(sessions.fetch_comet, options.cache) if has_comet else ""
    ways = [way for way in ways if way.session != "comet" or jar]
    ways = [way for way in ways if not way.engine or available(_FETCHES[way.engine], options.cache)]
    conf = dict(setting.split("=", 1) for setting in options.conf)
    spec = SessionSpec(options.cache, options.cores, options.heap, conf, jar)
    suffix = "-no-broadcast" if options.no_broadcast else ""
    if any(way.session == "comet" for way in ways):
        suffix += "-comet"
    path: Path = options.cache / "results" / f"{name}-sf{options.scale:g}{suffix}.json"
    found: dict[str, Any] = {"groups": {}}
    with Pool(spec, options.timeout) as pool:
        turns = Turns(pool, ways, options.rounds, warm_up=not options.no_warm_up)
        found.update(_about(pool, ways, options))
        for group, questions in groups.items():
            measured = found["groups"].setdefault(group, {})
            for question in questions:
                # A part of the rows says which are right only if their order is that of all rows.
                measured[question.name] = turns.measure(question, without_limit)
                _write(path, found)
    for group, measured in found["groups"].items():
        if measured:
            print(f"\n{name}, scale factor {options.scale:g}, {group}\n{describe(measured)}")
    progress(f"written to {path}")
    if options.keep:
        _keep(path.name, found, whole)
    return int(any(each["problems"] for each in _all(found)))


def _ways(options: argparse.Namespace) -> list[Way]:
    own = dict(setting.split("=", 1) for setting in options.set)
    ways = [WAYS[way] for way in options.ways]
    return [way.with_settings(own) if way.name == "ours" else way for way in ways]


def _about(pool: Pool, ways: list[Way], options: argparse.Namespace) -> dict[str, Any]:
    versions = pool.ask(ways[0].session, worker.versions)
    if any(way.session == "comet" for way in ways):
        versions["comet"] = sessions.COMET[sessions.LINE][0].rsplit(":", 1)[1]
    settings = {
        "scale": options.scale,
        "cores": options.cores,
        "heap": options.heap,
        "rounds": options.rounds,
        "conf": options.conf,
        "ways": {way.name: way.conf for way in ways},
    }
    about = {"date": date.today().isoformat(), "machine": facts.machine(), "versions": versions}
    return {**about, "settings": settings}


def _keep(name: str, found: dict[str, Any], whole: list[str]) -> None:
    """Put groups whose queries have all run into `bench/results`, beside those of other runs."""
    path = BENCH / "results" / name
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    measured = {group: found["groups"][group] for group in whole}
    _write(path, {**found, "groups": {**known.get("groups", {}), **measured}})


def _all(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for measured in found["groups"].values() for each in measured.values()]


def _write(path: Path, found: dict[str, Any]) -> None:
    """After each query: a run may take hours."""
    found["problems"] = [problem for each in _all(found) for problem in each["problems"]]
    found["totals"] = {
        group: totals(measured, "stock", "ours") for group, measured in found["groups"].items()
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(as_json(found), encoding="utf-8")
