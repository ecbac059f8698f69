"""Queries on a cluster that breaks: is the answer right, with the extension and without?

    bench/faults.py --runs 100          seeded runs, each with the extension and without
    bench/faults.py --speculation       the same where Spark starts slow tasks a second time
    bench/faults.py --decommissioning   executors leave, and move their shuffle files before

A standalone master and two workers of the pyspark package run on this machine. A run is a case of
`harness/fault_cases.py`, with repeatable or unstable inputs, and a fault of `harness/faults.py` at
a moment that the seed decides. The outcome is added to the result file.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import summary
from harness.fault_cases import CASES, SETTINGS, Case
from harness.faults import DECOMMISSIONING, FAULTS, PLAIN, SPECULATION, Fault, Injector
from harness.measure import progress
from harness.reliability_report import RIGHT, WRONG
from harness.sessions import configured
from harness.standalone import Standalone
from harness.ways import WAYS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RESULTS = "reliability-faults.json"
ON, OFF = WAYS

#: Names of this machine, for a worker each.
HOSTS = ("127.0.0.1", "localhost")

Answer = list[str]


@dataclass(frozen=True)
class Run:
    """One query and its fault."""

    number: int
    case: Case
    unstable: bool
    fault: Fault


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="bench/faults.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--runs", type=int, default=100, help="how many (100)")
    add("--first", type=int, default=0, help="number of the first one (0)")
    add("--seed", type=int, default=1, help="decides on cases, faults and moments (1)")
    for name, const, about in (
        ("--speculation", SPECULATION, "slow executors, and speculation on"),
        ("--decommissioning", DECOMMISSIONING, "executors that leave"),
    ):
        add(name, dest="session", action="store_const", const=const, default=PLAIN, help=about)
    add("--only", default="", help="cases whose names contain this")
    add("--results", type=Path, help="another file for the results")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """Run them; 1 if an answer with the extension was wrong, or failed where stock's did not."""
    options = parse(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with tempfile.TemporaryDirectory() as home, Standalone(Path(home) / "c", "1g") as cluster:
        for host in HOSTS:
            cluster.add_worker(host)
        trial = Trial(_session(cluster, Path(home), options.session), cluster, options)
        try:
            bad = trial.all()
        finally:
            trial.spark.stop()
    return 1 if bad else 0


class Trial:
    """A session on a cluster, the runs that are done in it, and what came of them."""

    def __init__(
        self, spark: SparkSession, cluster: Standalone, options: argparse.Namespace
    ) -> None:
        self.spark = spark
        self._options = options
        self._injector = Injector(spark, cluster, HOSTS)
        self._expected: dict[tuple[str, bool], Answer] = {}
        self._fetched_by: dict[str, dict[str, Any]] = {}

    def all(self) -> list[dict[str, Any]]:
        """Do all runs and return the bad ones."""
        runs = {}
        for run in _runs(self._options):
            came = self._one(run)
            progress(json.dumps(came))
            runs[_name(came)] = came
            self._write(runs)
        return [
            run
            for run in runs.values()
            if run[ON] == WRONG or (run[ON] != RIGHT and run[OFF] == RIGHT)
        ]

    def _write(self, runs: dict[Any, dict[str, Any]]) -> None:
        """Add to the runs of the result file, or replace those of the same name."""
        path: Path | None = self._options.results
        known = summary.read(RESULTS) if path is None else {}
        fetched = {**known.get("fetched", {}), **self._fetched_by}
        both = {**{_name(run): run for run in known.get("runs", [])}, **runs}
        found = {"runs": list(both.values()), "fetched": fetched}
        if path is None:
            summary.keep(RESULTS, **found)
        else:
            path.write_text(json.dumps(found), encoding="utf-8")

    def _one(self, run: Run) -> dict[str, Any]:
        expected = self._clean(run.case, run.unstable)
        came: dict[str, Any] = {
            "seed": self._options.seed,
            "run": run.number,
            "case": run.case.name,
            "inputs": "unstable" if run.unstable else "stable",
            "fault": run.fault.name,
        }
        for way in (ON, OFF):
            random = Random(f"{self._options.seed} {run.number}")
            self._injector.mend()
            self._injector.arm(run.fault.at(random, marks=way == ON), run.fault, random)
            try:
                answer = self._answer(run.case, run.unstable, way)
                came[way] = RIGHT if answer == expected else WRONG
            except Exception as error:
                came[way] = _outcome(error)
            came[f"{way}_happened"] = self._injector.disarm()
            came[f"{way}_again"] = dict(self._injector.again)
        return came

    def _clean(self, case: Case, unstable: bool) -> Answer:
        """The answer without a fault; it also keeps the bytes that were fetched for it."""
        if (case.name, unstable) in self._expected:
            return self._expected[case.name, unstable]
        self._injector.mend()
        answers, fetched = {}, {}
        for way in (OFF, ON):
            group = f"{case.name} {unstable} {way}"
            self.spark.sparkContext.setJobGroup(group, group)
            answers[way] = self._answer(case, unstable, way, check=True)
            fetched[way] = self._fetched(group)
            self.spark.sparkContext.setJobGroup("", "")
        if answers[ON] != answers[OFF]:
            raise AssertionError(f"{case.name} is wrong without a fault: {answers}")
        inputs = "unstable" if unstable else "stable"
        self._fetched_by.setdefault(case.name, {})[inputs] = fetched
        self._expected[case.name, unstable] = answers[ON]
        return answers[ON]

    def _answer(self, case: Case, unstable: bool, way: str, check: bool = False) -> Answer:
        import pyspark_skewext as skewext

        spark = self.spark
        if case.prepare is not None:
            spark.conf.set("spark.skewext.enabled", "true")
            case.prepare(spark)
        spark.conf.set("spark.skewext.enabled", str(way == ON).lower())
        frame = case.query(spark, unstable)
        summed = _summed(self._written(frame, way) if case.writes else frame)
        (row,) = summed.collect()
        # Of unstable inputs some plans stay as they are, as they must.
        if check and way == ON and not unstable and not case.writes:
            plan = f"{_jvm(summed).queryExecution().executedPlan()}\n{skewext.explain(summed)}"
            if case.fires not in plan:
                raise AssertionError(f"{case.name} does not show {case.fires}:\n{plan}")
        return [str(value) for value in row[: len(row) - _unstable(summed)]]

    def _written(self, frame: DataFrame, way: str) -> DataFrame:
        """The rows, written by bucket and read again."""
        import pyspark_skewext as skewext

        self.spark.sql("DROP TABLE IF EXISTS written")
        if way == ON:
            skewext.write_bucketed(frame, "written", by="k", buckets=5)
        else:
            frame = frame.repartition(5, "k")
            frame.write.bucketBy(5, "k").sortBy("k").saveAsTable("written")
        return self.spark.table("written")

    def _fetched(self, group: str) -> dict[str, int]:
        """Bytes that tasks read of shuffles, of their own host's and of others."""
        context: Any = self.spark.sparkContext
        context._jsc.sc().listenerBus().waitUntilEmpty()
        store, tracker = context._jsc.sc().statusStore(), context.statusTracker()
        stages = set()
        for job in tracker.getJobIdsForGroup(group):
            stages.update(tracker.getJobInfo(job).stageIds)
        local = remote = 0
        for stage in stages:
            told = store.lastStageAttempt(stage)
            local += told.shuffleLocalBytesRead()
            remote += told.shuffleRemoteBytesRead()
        return {"local": local, "remote": remote}


def _runs(options: argparse.Namespace) -> Iterator[Run]:
    """`--runs` runs in the order of the seed; each combination once before any comes twice."""
    faults = [fault for fault in FAULTS if fault.session == options.session]
    long = options.session == DECOMMISSIONING
    all_of_them = [
        (case, unstable, fault)
        for case, unstable, fault in product(CASES, (False, True), faults)
        if fault.stage in case.stages and case.unstable >= unstable and case.long == long
        if options.only in case.name
    ]
    Random(options.seed).shuffle(all_of_them)
    for number in range(options.first, options.first + options.runs):
        yield Run(number, *all_of_them[number % len(all_of_them)])


def _summed(df: DataFrame) -> DataFrame:
    """One row: a fingerprint of the stable columns, then sums of the unstable ones."""
    from pyspark.sql import functions as F

    unstable = [name for name in df.columns if name.startswith("u")]
    stable = [name for name in df.columns if name not in unstable]
    hashes = F.sum(F.xxhash64(*stable).cast("decimal(38,0)"))
    counts = [F.count(name) for name in unstable]
    return df.agg(F.count("*"), hashes, *counts, *(F.sum(name).alias("u") for name in unstable))


def _unstable(summed: DataFrame) -> int:
    return summed.columns.count("u")


def _jvm(df: DataFrame) -> Any:
    frame: Any = df
    return frame._jdf


def _outcome(error: Exception) -> str:
    """The name of a known error, or the beginning of its message."""
    known = [name for name in ("indeterminate", "OutOfMemoryError") if name in str(error)]
    return f"failed: {(known or [str(error)[:300]])[0]}"


def _session(cluster: Standalone, home: Path, kind: str) -> SparkSession:
    settings = {
        "spark.executor.cores": "1",
        "spark.executor.memory": "512m",
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        # Retry lost blocks at once, and notice a lost executor soon.
        "spark.shuffle.io.maxRetries": "1",
        "spark.shuffle.io.retryWait": "200ms",
        "spark.unsafe.exceptionOnMemoryLeak": "true",
        "spark.speculation": str(kind == SPECULATION).lower(),
        "spark.speculation.interval": "50ms",
        "spark.speculation.multiplier": "1.2",
        "spark.speculation.quantile": "0.2",
        "spark.decommission.enabled": str(kind == DECOMMISSIONING).lower(),
        "spark.storage.decommission.enabled": str(kind == DECOMMISSIONING).lower(),
        "spark.storage.decommission.shuffleBlocks.enabled": "true",
        # Leave seconds after it was asked to, instead of up to a minute.
        "spark.storage.decommission.replicationReattemptInterval": "500ms",
        **SETTINGS,
    }
    return configured(cluster.url, settings, "OFF")


def _name(run: dict[str, Any]) -> tuple[Any, ...]:
    return run["seed"], run["run"], run["fault"], run["case"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
