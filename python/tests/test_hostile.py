"""Names, sizes and tables that nobody expects."""

from __future__ import annotations

from pathlib import Path

import pytest
from amount import TEST_ALL, some
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from stock import INTERPRETED, setting, stock_join

import pyspark_skewext as skewext

NAMES = [
    "a.b",
    "a`b",
    "``",
    " ",
    "ключ",
    "🔑",
    "x" * 300,
    "select",
    "quo\"te's",
    "<b>&amp;",
    "new\nline",
    "$1%s{}\\",
    "-- a",
]


@pytest.fixture(autouse=True)
def interpreted(spark: SparkSession):  # type: ignore[no-untyped-def]
    for key, value in INTERPRETED.items():
        spark.conf.set(key, value)
    yield
    for key in INTERPRETED:
        spark.conf.unset(key)


def rows(df: DataFrame) -> list[str]:
    return sorted(map(str, map(tuple, df.collect())))


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@pytest.mark.parametrize("name", ["", *some(4, NAMES)], ids=ascii)
def test_names(spark: SparkSession, name: str) -> None:
    """As a key, beside it as columns, and in what explain says."""
    frames = [
        spark.range(n, n + 3).select(sf.col("id").alias(name), sf.col("id").alias(f"{name}{n}"))
        for n in range(3)
    ]
    joined = skewext.multi_full_join(*frames, on=name)
    assert joined.columns == [name, *(f"{name}{n}" for n in range(3))]
    expected = [(k, *(k if n <= k < n + 3 else None for n in range(3))) for k in range(5)]
    assert rows(joined) == sorted(map(str, expected))
    assert "full outer" in str(skewext.explain(joined))
    assert skewext.explain(joined)._repr_html_()
    by_technique = skewext.skew_join(
        frames[0], frames[1], name, "full", skewext.Salted(salts=2, hot_keys=[1])
    )
    assert rows(by_technique) == rows(frames[0].join(frames[1], [name], "full"))
    found = skewext.skew_report(frames[0], on=name)
    assert str(found)


@pytest.mark.parametrize("name", some(1, ["a.b", "ключ", "x" * 300, 'quo"te']), ids=ascii)
def test_names_in_buckets(spark: SparkSession, name: str) -> None:
    df = spark.range(5).select(sf.col("id").alias(name), sf.lit(1).alias("v"))
    try:
        written = skewext.write_bucketed(df, "hostile", by=name, buckets=2)
        assert written.rows == 5
        joined = skewext.multi_full_join(spark.table("hostile"), df, on=name, suffixes=["1", "2"])
        assert joined.count() == 5
        one = spark.table("hostile").where(sf.col(quoted(name)) == 3)
        assert one.count() == 1
    finally:
        spark.sql("DROP TABLE IF EXISTS hostile")


def test_a_table_that_is_dropped_before_the_query_runs(spark: SparkSession) -> None:
    spark.range(3).withColumnRenamed("id", "k").write.saveAsTable("gone")
    other = spark.range(3).withColumnRenamed("id", "k")
    joined = skewext.multi_full_join(spark.table("gone"), other, other, on="k")
    spark.sql("DROP TABLE gone")
    with pytest.raises(Py4JJavaError, match="does not exist"):
        joined.collect()
    with pytest.raises(PySparkException):
        skewext.multi_full_join(spark.table("gone"), other, on="k")
    assert skewext.multi_full_join(other, other, on="k").count() == 3


@pytest.mark.slow
def test_empty_files(spark: SparkSession, tmp_path: Path) -> None:
    """A folder without files, one with files without rows, and files of no bytes."""
    kept = spark.range(2).selectExpr("id AS k", "id AS v")
    kept.where("k < 0").repartition(2).write.parquet(str(tmp_path / "no-rows"))
    (tmp_path / "no-files").mkdir()
    (tmp_path / "no-bytes").mkdir()
    for n in range(2):
        (tmp_path / "no-bytes" / f"{n}.csv").write_bytes(b"")
    empty = [
        spark.read.schema("k long, v long").parquet(str(tmp_path / name))
        for name in ("no-rows", "no-files")
    ]
    empty.append(spark.read.schema("k long, v long").csv(str(tmp_path / "no-bytes")))
    suffixes = ["0", "1", "2", "3"]
    joined = skewext.multi_full_join(*empty, kept, on="k", suffixes=suffixes)
    assert rows(joined) == ["(0, None, None, None, 0)", "(1, None, None, None, 1)"]
    assert skewext.multi_full_join(*empty, on="k", suffixes=suffixes[:3]).collect() == []
    for technique in ("broadcast_map", "iterative_broadcast", "adaptive"):
        by = skewext.skew_join(empty[0], kept, "k", "full", technique=technique)
        assert rows(by) == rows(empty[0].join(kept, "k", "full"))


def test_keys_of_a_megabyte(spark: SparkSession) -> None:
    size = 1 << 20
    frames = [
        spark.range(n, n + 3).select(
            # Different at their ends alone.
            sf.concat(sf.expr(f"repeat('k', {size})"), "id").alias("k"),
            sf.col("id").alias(f"v{n}"),
        )
        for n in range(2)
    ]
    for grouping in ("hash", "sort"):
        with setting(spark, "spark.skewext.multiJoin.grouping", grouping):
            joined = skewext.multi_full_join(*frames, on="k")
            found = rows(joined.select(sf.length("k"), "v0", "v1"))
        expected = [(size + 1, k if k < 3 else None, k or None) for k in range(4)]
        assert found == sorted(map(str, expected))


@pytest.mark.slow
def test_many_columns(spark: SparkSession) -> None:
    each = 1000 if TEST_ALL else 200
    frames = [
        spark.range(n, n + 2).select(
            sf.col("id").alias("k"), *(sf.lit(c).alias(f"c{n}_{c}") for c in range(each))
        )
        for n in range(2)
    ]
    found = sorted(skewext.multi_full_join(*frames, on="k").collect())
    assert [len(row) for row in found] == [2 * each + 1] * 3
    assert [row["c0_7"] for row in found] == [7, 7, None]
    assert [row[f"c1_{each - 1}"] for row in found] == [None, each - 1, each - 1]


@pytest.mark.slow
def test_many_inputs(spark: SparkSession) -> None:
    many = 40 if TEST_ALL else 8
    one = spark.createDataFrame([(1, 1), (2, 2)], "k int, v int").coalesce(1)
    frames = [
        one.where(sf.col("k") == 1 + n % 2).withColumnRenamed("v", f"v{n}") for n in range(many)
    ]
    with setting(spark, "spark.sql.shuffle.partitions", 1):
        found = sorted(skewext.multi_full_join(*frames, on="k").collect())
    assert [row["k"] for row in found] == [1, 2]
    assert [v for v in found[0][1:] if v is not None] == [1] * (many // 2)
    assert found[1]["v1"] == 2 and found[1]["v0"] is None


def test_values_at_the_ends_of_their_types(spark: SparkSession) -> None:
    values = "(-9223372036854775808L), (9223372036854775807L), (0L), (-1L), (CAST(NULL AS BIGINT))"
    frames = [
        spark.sql(f"SELECT k, {n} AS v{n} FROM VALUES {values} AS t(k)").limit(5 - n)
        for n in range(2)
    ]
    _, expected = stock_join([(frame, ["k"]) for frame in frames], ["k"])
    assert rows(skewext.multi_full_join(*frames, on="k")) == sorted(map(str, map(tuple, expected)))
