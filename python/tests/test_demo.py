"""The demo as a newcomer runs it, at a tiny scale; and that it notices wrong answers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import demo
from demo import contest, story
from demo.compare import fingerprint, only_in_first, setting
from demo.options import DemoError
from demo.session import demo_session
from pyspark_skewext import multi_full_join

PACKAGE_PARENT = Path(__file__).resolve().parents[1]
TINY = ["--scale-factor", "0.01", "--shuffle-partitions", "2", "--cache-dir", "cache"]


def run_python(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    paths = [str(PACKAGE_PARENT), os.environ.get("PYTHONPATH", "")]
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        cwd=cwd,
        text=True,
        capture_output=True,
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def ended(place: Path) -> subprocess.CompletedProcess[str]:
    return run_python("-m", "demo", *TINY, "--runs", "2", "--output", "out", cwd=place)


def test_demo_ends_well(ended: subprocess.CompletedProcess[str]) -> None:
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "All answers agree: stock Spark, skewext and DuckDB." in ended.stdout
    assert "WRONG" not in ended.stdout
    assert "Traceback" not in ended.stderr


def test_demo_shows_plans_of_both_variants(ended: subprocess.CompletedProcess[str]) -> None:
    stock = re.findall(r"stock Spark +10 +10 +5 x SortMergeJoin", ended.stdout)
    ours = re.findall(r"skewext +6 +0 +1 x MultiFullJoin", ended.stdout)
    assert (len(stock), len(ours)) == (2, 2)


def test_demo_shows_equal_answers(ended: subprocess.CompletedProcess[str]) -> None:
    answers = re.findall(r"^  (stock Spark|skewext|DuckDB) +([\d,]+)  (-?\d+)$", ended.stdout, re.M)
    assert [name for name, _, _ in answers] == ["stock Spark", "skewext", "DuckDB"] * 2
    assert len({(rows, checksum) for _, rows, checksum in answers}) == 2


def test_demo_shows_interleaved_runs_and_ratio(ended: subprocess.CompletedProcess[str]) -> None:
    assert len(re.findall(r"run [12] of 2: .*stock Spark \d+\.\d\d s", ended.stdout)) == 4
    assert len(re.findall(r"skewext is \d+\.\d times as fast", ended.stdout)) == 2


def test_demo_leaves_table_and_picture(
    ended: subprocess.CompletedProcess[str], place: Path
) -> None:
    table, picture = place / "out" / "customers.parquet", place / "out" / "customers.png"
    assert (table / "_SUCCESS").is_file()
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert str(table.resolve()) in ended.stdout
    assert str(picture.resolve()) in ended.stdout
    assert {path.name for path in place.iterdir()} == {"cache", "out"}


def test_demo_fails_on_a_wrong_answer(
    spark: SparkSession,
    ended: subprocess.CompletedProcess[str],
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert ended.returncode == 0
    right = multi_full_join

    def without_null_keys(*inputs: DataFrame, on: str) -> DataFrame:
        return right(*inputs, on=on).where(f"{on} is not null")

    monkeypatch.setattr(contest, "multi_full_join", without_null_keys)
    monkeypatch.setattr(story, "demo_session", lambda *_: nullcontext((spark, place / "work")))
    monkeypatch.chdir(place)
    options = ["--output", "wrong", "--variant", "customer", "--runs", "1"]
    assert demo.main([*TINY, *options]) == 1
    printed = capsys.readouterr().out
    assert "WRONG: customer: skewext and stock Spark have different answers" in printed
    assert "only stock Spark has: Row(customer_sk=None" in printed
    assert "All answers agree" not in printed


def test_fingerprint_does_not_depend_on_order(spark: SparkSession) -> None:
    rows = [(1, None, "a"), (2, 3, None), (2, 3, None)]
    schema = "k int, v int, s string"
    there = spark.createDataFrame(rows, schema)
    back = spark.createDataFrame(rows[::-1], schema).repartition(3)
    assert fingerprint(there) == fingerprint(back)
    assert fingerprint(there).rows == 3


@pytest.mark.parametrize(
    "other",
    [
        pytest.param([(1, None, 5), (2, 3, 4)], id="null elsewhere"),
        pytest.param([(1, 5, None), (1, 5, None)], id="other row twice"),
        pytest.param([(1, 5, None)], id="row missing"),
        pytest.param([], id="no rows"),
    ],
)
def test_fingerprint_sees_differences(
    spark: SparkSession, other: list[tuple[int | None, ...]]
) -> None:
    schema = "k int, v int, w int"
    one = spark.createDataFrame([(1, 5, None), (2, 3, 4)], schema)
    two = spark.createDataFrame(other, schema)
    assert fingerprint(one) != fingerprint(two)
    assert only_in_first(one, two) or only_in_first(two, one)


def test_setting_is_put_back(spark: SparkSession) -> None:
    name = "spark.skewext.enabled"
    before = spark.conf.get(name, None)
    with setting(spark, name, "false"):
        assert spark.conf.get(name) == "false"
    assert spark.conf.get(name, None) == before


def test_demo_leaves_a_running_session_alone(spark: SparkSession) -> None:
    with pytest.raises(DemoError, match="running in this process"), demo_session("local[1]", 2):
        pass
    assert spark.range(1).count() == 1
