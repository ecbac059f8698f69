"""The demo as a newcomer runs it, at a tiny scale; and it notices wrong answers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import demo
from pyspark_skewext import multi_full_join

PYTHON_FOLDER = Path(__file__).resolve().parents[1]
TINY = ["--scale-factor", "0.01", "--cache", "cache", "--runs", "1"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def printed(place: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "demo", *TINY, "--output", "out"],
        env={**os.environ, "PYTHONPATH": str(PYTHON_FOLDER)},
        cwd=place,
        text=True,
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_both_variants_have_equal_answers_and_the_expected_plans(printed: str) -> None:
    assert len(re.findall(r"stock Spark +10 Exchange +10 Sort +5 x SortMergeJoin", printed)) == 2
    assert len(re.findall(r"skewext +6 Exchange +0 Sort +1 x MultiFullJoin", printed)) == 2
    answers = re.findall(r"^  (stock Spark|skewext|DuckDB) +(\(\d+, -?\d+\))$", printed, re.M)
    assert [name for name, _ in answers] == ["stock Spark", "skewext", "DuckDB"] * 2
    assert len({answer for _, answer in answers}) == 2
    assert len(re.findall(r"skewext is \d+\.\d times as fast", printed)) == 2
    assert printed.endswith("All answers agree: stock Spark, skewext and DuckDB.\n")


def test_the_table_and_the_picture_stay(place: Path, printed: str) -> None:
    assert f"{place.resolve()}/out/customers.png" in printed
    assert (place / "out" / "customers.parquet" / "_SUCCESS").is_file()
    assert (place / "out" / "customers.png").read_bytes().startswith(b"\x89PNG")
    assert {path.name for path in place.iterdir()} == {"cache", "out"}


@pytest.mark.slow
@pytest.mark.usefixtures("printed")
def test_a_wrong_answer_fails_the_demo(
    spark: SparkSession,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def without_null_keys(*inputs: DataFrame, on: str, indicator: str | None = None) -> DataFrame:
        joined = multi_full_join(*inputs, on=on, indicator=indicator).where(f"{on} is not null")
        return joined if indicator is None else joined.withColumn(indicator, F.expr("array(-1)"))

    @contextmanager
    def this_session() -> Iterator[tuple[SparkSession, Path]]:
        yield spark, place / "work"

    monkeypatch.setattr(demo, "multi_full_join", without_null_keys)
    monkeypatch.setattr(demo, "demo_session", this_session)
    monkeypatch.setattr(demo, "VARIANTS", demo.VARIANTS[:1])
    monkeypatch.chdir(place)
    (place / "work").mkdir()
    assert demo.main([*TINY, "--output", "wrong"]) == 1
    text = capsys.readouterr().out
    assert "WRONG: customers: skewext and DuckDB have different answers" in text
    assert "WRONG: customers: the column sources is wrong in" in text
    assert "All answers agree" not in text


@pytest.mark.usefixtures("printed")
def test_keys_of_the_data(place: Path) -> None:
    """One row per customer, or up to two; and rows without a customer."""
    (made,) = (place / "cache").iterdir()
    nulls = {}
    for variant, most in zip(demo.VARIANTS, (1, 2)):
        names = []
        for source in demo.SOURCES:
            rows = duckdb.sql(f"SELECT * FROM '{made}/{variant}/{source.table}.parquet'")
            names += [name for name in rows.columns if name != demo.KEY]
            counts = dict(rows.aggregate(f"{demo.KEY}, count(*)").fetchall())
            nulls[variant, source.table] = counts.pop(None, 0)
            assert max(counts.values()) == most
        assert len(names) == len(set(names))
    assert nulls["customers", "store_sales"] == 1 and nulls["duplicates", "store_sales"] > 2


def test_data_is_made_once_and_an_interrupt_leaves_nothing(
    place: Path, printed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    assert "DuckDB makes TPC-DS" in printed
    monkeypatch.setattr(demo, "query_of", interrupt)
    assert demo.make_data(place / "cache", 0.01).is_dir()
    with pytest.raises(KeyboardInterrupt):
        demo.make_data(tmp_path, 0.01)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "other",
    [
        pytest.param([(1, None, 5), (2, 3, 4)], id="null elsewhere"),
        pytest.param([(1, 5, None), (1, 5, None)], id="other row twice"),
        pytest.param([(1, 5, None)], id="row missing"),
        pytest.param([], id="no rows"),
    ],
)
def test_fingerprints_see_differences_and_no_order(
    spark: SparkSession, other: list[tuple[int | None, ...]]
) -> None:
    schema = "k int, v int, w int"
    rows = [(1, 5, None), (2, 3, 4)]
    one = demo.fingerprint(spark.createDataFrame(rows, schema))
    assert one == demo.fingerprint(spark.createDataFrame(rows[::-1], schema).repartition(3))
    assert one != demo.fingerprint(spark.createDataFrame(other, schema))
