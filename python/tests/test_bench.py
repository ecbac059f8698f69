"""The benchmarks compare answers and plans, and the pages show the figures of the result files."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any, Callable

import pytest
import summary
from harness import data, facts, hot_tables, report, sessions, worker
from harness.case import Case, Point
from harness.duck import ByDuckDB
from harness.facts import Watch
from harness.measure import Options, measure
from harness.peers import PACKAGES
from harness.plans import difference, expected_plan
from harness.pool import Pool
from harness.variants import VARIANTS, frames
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from stock import changed, setting


def test_pages_show_the_figures_of_the_results() -> None:
    for page, blocks in summary.pages().items():
        text = page.read_text(encoding="utf-8")
        for name, block in blocks.items():
            assert block.count("\n") >= 3, name
            assert summary.with_block(text, name, block) == text, "run bench/summary.py"


def test_a_result_with_duckdb_has_its_ratio() -> None:
    (result,) = (r for r in summary.in_order(summary.RESULTS) if r["case"] == "n2")
    (point,) = result["points"]
    _, seconds = report.best(point, "ours") or ("", 0.0)
    point["variants"]["duckdb"] = {"family": "duckdb", "min": 4 * seconds}
    *_, row = summary.cases([result], "").splitlines()
    assert row.split(" | ")[-2] == "0.25"


def test_a_block_is_replaced_and_nothing_else() -> None:
    page = "".join(
        f"{summary.BEGIN}\n{text}\n{summary.END}\nbetween\n".format(name=name)
        for name, text in (("a.py", "old"), ("b.py", "kept"))
    )
    assert summary.with_block(page, "a.py", "new") == page.replace("old", "new")
    with pytest.raises(ValueError):
        summary.with_block("a page without a block", "a.py", "new")


def test_every_result_was_right() -> None:
    found = summary.in_order(summary.RESULTS)
    assert set(summary.HEADLINES) <= {result["case"] for result in found}
    for result in found:
        assert result["problems"] == [], result["case"]
        for point in result["points"]:
            answers = {
                (ran["rows"], ran["checksum"])
                for ran in point["variants"].values()
                if ran.get("checksum") is not None
            }
            assert len(answers) <= 1, result["case"]
    runs = summary.read("reliability-faults.json")["runs"]
    assert [run for run in runs if run["on"] == "wrong"] == []
    merges = summary.read("merge.json")["cases"]
    assert [name for name, case in merges.items() if case["problems"]] == []


class Sessions(Pool):
    """In place of sessions: the answers and plans of variants."""

    def __init__(self, checksums: dict[str, str], plans: dict[str, dict[str, int]]) -> None:
        self._checksums = checksums
        self._plans = plans
        self.turns: list[str] = []

    def ask(self, kind: str, command: Callable[..., Any], *arguments: Any) -> Any:
        if command is worker.generate:
            return None
        name, point, _ = arguments
        if command is worker.check:
            return {"rows": 5, "checksum": self._checksums.get(name, "17"), "seconds": 1.0}
        self.turns.append(name)
        plan = self._plans.get(name, expected_plan(VARIANTS[name], point))
        return {"seconds": 2.0, "stages": [], "operators": plan}

    def close(self) -> None:
        pass


def measured(tmp_path: Path, **plans: dict[str, int]) -> tuple[Sessions, dict[str, Any]]:
    case = Case("two", "two tables", (Point("all"),), ("sortmerge", "ours", "floor"))
    sessions = Sessions({"ours": "18"} if not plans else {}, plans)
    (found,) = measure(case, sessions, Options(tmp_path, 100, rounds=2, comet=False))
    return sessions, found


def test_another_answer_is_a_problem(tmp_path: Path) -> None:
    sessions, found = measured(tmp_path)
    assert found["problems"] == [
        "two all: ours and sortmerge give different answers: 5, 5 rows",
    ]
    # After the warm-up each round begins with another variant.
    assert sessions.turns[3:] == ["sortmerge", "ours", "floor", "ours", "floor", "sortmerge"]
    assert found["variants"]["ours"]["seconds"] == [2.0, 2.0]


def test_another_plan_is_a_problem(tmp_path: Path) -> None:
    _, found = measured(tmp_path, ours={"SortMergeJoin": 3, "Exchange": 4})
    (problem,) = found["problems"]
    assert problem.startswith("two all: ours: plan has 3 SortMergeJoin for 0, 0 MultiFullJoin")


def test_variants_of_missing_packages_are_left_out(tmp_path: Path) -> None:
    peers = [name for name, variant in VARIANTS.items() if variant.family in PACKAGES]
    assert sorted(peers) == ["asof-feast", "asof-polars", "asof-tempo"]
    without, having = (
        Options(tmp_path, 100, 1, comet=True, peers=is_in) for is_in in (False, True)
    )
    assert [name for name in VARIANTS if having.has(name) and not without.has(name)] == peers


def test_a_plan_of_comet_has_its_native_exchanges() -> None:
    wanted = expected_plan(VARIANTS["comet-shufflehash"], Point("all"))
    assert wanted == {"CometHashJoin": 3, "Exchange": 6, "NativeExchange": 6, "Sort": 0}
    found = {"CometHashJoin": 3, "Exchange": 6, "NativeExchange": 5}
    assert difference(wanted, found) == "plan has 5 NativeExchange for 6"


def test_fetched_files_are_complete(tmp_path: Path) -> None:
    make = "import pathlib, sys; pathlib.Path(sys.argv[1]).mkdir(); sys.exit(int(sys.argv[2]))"

    def fetched(status: str) -> Path:
        return sessions.fetched(tmp_path / "jars", (sys.executable, "-c", make, "{}", status))

    with pytest.raises(CalledProcessError):
        fetched("1")
    assert not (tmp_path / "jars").exists()
    # The second time nothing runs.
    assert fetched("0") == fetched("1") == tmp_path / "jars"
    assert (tmp_path / "jars").is_dir()


def test_the_interval_of_a_median_does_not_depend_on_outliers() -> None:
    found = report.interval([1 + n / 1000 for n in range(97)] + [9.0] * 3)
    # Of 100 in order, the 41st and the 60th.
    assert (found["low"], found["high"]) == (1.04, 1.059)


def test_balance_is_of_the_stage_that_delays_the_query() -> None:
    def stage(scans: bool, median: float, longest: float) -> dict[str, Any]:
        return {"scans": scans, "tasks": 3, "median_ms": median, "longest_ms": longest}

    scan, even, small = stage(True, 100, 900), stage(False, 390, 400), stage(False, 1, 90)
    uneven = stage(False, 20, 300)
    ratios = [
        found and found["ratio"]
        for found in map(facts.balance, ([], [scan], [scan, even, small], [scan, even, uneven]))
    ]
    assert ratios == [None, 9, 400 / 390, 15]


def counts(table: DataFrame) -> tuple[int, int, int, int]:
    """Rows, rows with the hot key, rows without a key, and distinct keys."""
    key = F.col("device_id")
    hot, null = F.count_if(key == hot_tables.HOT), F.count_if(key.isNull())
    (row,) = table.agg(F.count("*"), hot, null, F.countDistinct(key)).collect()
    return tuple(row)


@pytest.mark.slow
def test_tables_have_the_skew_of_their_names(spark: SparkSession, tmp_path: Path) -> None:
    def made(kind: str, number: int = 0) -> DataFrame:
        return hot_tables.table(spark, kind, 1600, number)

    for table in range(2):
        data.generate(spark, tmp_path, "hot", 1600, table)
    hot, other = data.read(spark, tmp_path, "hot", 1600, 2)
    assert (counts(hot), counts(other)) == ((1600, 800, 0, 401), (400, 1, 0, 400))
    # Half of the keys match.
    assert hot.select("device_id").distinct().join(other, "device_id").count() == 200
    rows, _, without, _ = counts(made("hotnulls"))
    assert 0.25 < without / rows < 0.35
    assert counts(made("product")) == (1600 + 190, 190, 0, 1601)
    zipf = made("zipf").groupBy("device_id").count().orderBy(F.desc("count")).head(3)
    shares = [row["count"] / 1600 for row in zipf]
    assert shares == pytest.approx([n**-1.5 / hot_tables.ZETA for n in (1, 2, 3)], rel=0.3)
    copies = hot_tables.both_copies(1600)
    assert [counts(made("both", n))[:2] for n in (0, 1)] == [(1600, copies), (400, copies)]


@pytest.mark.parametrize("kind", ["duplicates", "nulls30", "threekeys"])
def test_duckdb_has_the_rows_of_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for table in range(3):
        data.generate(spark, tmp_path, kind, 100, table)
    tables = data.read(spark, tmp_path, kind, 100, 3)
    variant, point = VARIANTS["duckdb"], Point("all", kind, 3)
    rows = [
        Counter(frame.select(*sorted(frame.columns)).collect())
        for name in ("duckdb", "sortmerge")
        for frame in frames(VARIANTS[name], tables, point)
    ]
    assert rows[0] == rows[1]
    assert isinstance(variant.build, ByDuckDB)
    assert variant.build.seconds(tables, data.keys_of(kind), 1, "1g") > 0


def test_facts_of_a_split_join(spark: SparkSession) -> None:
    small = {
        "spark.sql.shuffle.partitions": 5,
        "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": 1000,
        "spark.sql.adaptive.skewJoin.skewedPartitionFactor": 2,
        "spark.sql.adaptive.advisoryPartitionSizeInBytes": 500,
        "spark.sql.adaptive.coalescePartitions.enabled": False,
        "spark.sql.autoBroadcastJoinThreshold": -1,
    }
    key = F.when(F.col("id") % 2 == 0, 7).otherwise(F.col("id") % 60).alias("k")
    hot = spark.range(0, 4000, 1, 4).select(key, F.xxhash64("id").alias("a"))
    other = spark.range(0, 100, 1, 4).select(F.col("id").alias("k"), F.xxhash64("id").alias("b"))

    def run(how: str) -> dict[str, Any]:
        watch = Watch(spark)
        hot.join(other, "k", how).write.format("noop").mode("overwrite").save()
        return watch.facts()

    with changed(spark, small):
        full, left = run("full"), run("left")
        with setting(spark, "spark.skewext.enabled", "false"):
            stock = run("left")
    joins = ("OursSplit", "SparkSplit", "SortMergeJoin")
    assert [full["operators"].get(name) for name in joins] == [1, None, None]
    assert [left["operators"].get(name) for name in joins] == [1, None, None]
    assert [stock["operators"].get(name) for name in joins] == [None, 1, 1]
    (described,) = full["splits"]
    # Four whole partitions, the pieces and the residual.
    tasks = 4 + int(described.split()[3]) + 1
    found = facts.balance(full["stages"])
    assert found is not None and found["tasks"] == tasks
    assert full["shuffle_bytes"] > 0
