"""Tables written with one file a bucket, and what is read from them without a sort."""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlparse

import duckdb
import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from multisets import assert_same_rows
from plans import node_names
from pyspark.errors import (
    AnalysisException,
    PySparkException,
    PySparkTypeError,
    PySparkValueError,
)
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from stock import INTERPRETED, changed, setting

import pyspark_skewext as skewext

EXAMPLES = int(os.environ.get("SKEWEXT_EXAMPLES", "8"))
SPLIT_ALL = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": 1,
    "spark.sql.adaptive.skewJoin.skewedPartitionFactor": 1.1,
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": 1,
    "spark.skewext.skew.minGain": 1,
    "spark.skewext.skew.maxRereadFactor": 100,
}
"""Each bucket that is larger than others by anything."""

BUCKET = re.compile(r"_(\d+)(?:\..*)?$")


@pytest.fixture(autouse=True)
def _no_tables(spark: SparkSession) -> Iterator[None]:
    drop_tables(spark)
    yield
    drop_tables(spark)


def drop_tables(spark: SparkSession) -> None:
    for name in ("t0", "t1", "t2"):
        spark.sql(f"DROP TABLE IF EXISTS {name}")


def paths(spark: SparkSession, table: str) -> list[str]:
    return [unquote(urlparse(name).path) for name in spark.table(table).inputFiles()]


def visits(spark: SparkSession, rows: int = 300) -> DataFrame:
    return spark.range(0, rows, 1, 5).selectExpr("id % 31 AS user", "id AS visit", "id % 3 AS day")


@pytest.mark.slow
def test_one_file_a_bucket(spark: SparkSession) -> None:
    written = skewext.write_bucketed(visits(spark), "t0", "user", numpy.int64(4))
    assert written.table == "spark_catalog.default.t0"
    assert (written.files, written.rows) == (4, 300)
    assert written.bytes == sum(os.path.getsize(path) for path in paths(spark, "t0"))
    assert sorted(int(BUCKET.findall(path)[0]) for path in paths(spark, "t0")) == [0, 1, 2, 3]
    again = skewext.write_bucketed(visits(spark), "t0", ["USER"], 4, mode="append")
    assert (again.files, again.rows) == (4, 300)
    assert len(paths(spark, "t0")) == 8
    parted = skewext.write_bucketed(
        visits(spark),
        "t1",
        by=["user", "visit"],
        buckets=2,
        sort="visit",
        partition_by="day",
        format="orc",
        compression="zlib",
    )
    assert parted.files == 6
    assert all(path.endswith(".zlib.orc") for path in paths(spark, "t1"))
    assert_same_rows(
        spark.table("t1").select("user", "visit", "day"),
        visits(spark).collect(),
    )


def test_the_result_prints_as_a_table(spark: SparkSession) -> None:
    hot = visits(spark).withColumn("user", sf.expr("if(visit % 8 > 0, 7, user)"))
    with setting(spark, "spark.sql.adaptive.skewJoin.skewedPartitionFactor", 20):
        written = skewext.write_bucketed(hot, "t0", "user", 30)
    most = max(written.buckets, key=lambda bucket: bucket.rows)
    assert written.skewed == [most.number]
    text = str(written)
    assert text.splitlines()[0] == (
        "spark_catalog.default.t0: 300 rows in "
        f"{sum(bucket.files for bucket in written.buckets)} files, 30 buckets"
    )
    assert sum("skewed" in line for line in text.splitlines()) == 1
    assert "10 more buckets have no more rows." in text
    assert "1 of 30 buckets have more than 20 times the rows" in text
    assert "<table>" in written._repr_html_() and "skewed" in written._repr_html_()
    assert written.to_dict()["buckets"][most.number]["rows"] == most.rows
    nothing = skewext.write_bucketed(hot, "t0", "user", 30, mode="Ignore")
    assert (nothing.files, nothing.rows, nothing.skewed) == (0, 0, [])


@pytest.mark.parametrize(
    ("kind", "words", "arguments"),
    [
        (PySparkValueError, "buckets must be at least 1, not 0", {"buckets": 0}),
        (PySparkValueError, "buckets must be at most 2147483647, not", {"buckets": 2**31}),
        (PySparkTypeError, "buckets must be a number, not str", {"buckets": "4"}),
        (PySparkTypeError, "buckets must be a number, not bool", {"buckets": True}),
        (AnalysisException, "'usr', which df does not have (did you mean 'user'?)", {"by": "usr"}),
        (AnalysisException, "its columns are 'user', 'visit', 'day'", {"sort": ["x"]}),
        (AnalysisException, "partition_by has the column 'x'", {"partition_by": "x"}),
        (PySparkValueError, "by must not be empty", {"by": []}),
        (PySparkValueError, "by must not have the column 'USER'", {"by": ["user", "USER"]}),
        (PySparkValueError, "'user' is both in by and in partition_by", {"partition_by": "User"}),
        (
            PySparkValueError,
            "'day' is both in sort and in partition_by",
            {"sort": "day", "partition_by": "day"},
        ),
        (PySparkValueError, "mode must be one of error,", {"mode": "upsert"}),
        (PySparkTypeError, "mode must be a word", {"mode": None}),
        (PySparkTypeError, "table must be the name of a table, not int", {"table": 7}),
        (PySparkTypeError, "format must be a word or None", {"format": 7}),
        (PySparkTypeError, "df must be a DataFrame, not str", {"df": "visits"}),
        (AnalysisException, "not in the session catalog", {"table": "other.db.t"}),
        (AnalysisException, "already exists", {"table": "t0"}),
        (AnalysisException, "does not match", {"table": "t0", "mode": "append", "buckets": 5}),
    ],
)
def test_bad_arguments(
    spark: SparkSession, kind: type[Exception], words: str, arguments: dict[str, Any]
) -> None:
    if arguments.get("table") == "t0":
        skewext.write_bucketed(visits(spark, 1), "t0", "user", 4)
    usual: dict[str, Any] = {"df": visits(spark, 1), "table": "t1", "by": "user", "buckets": 4}
    with pytest.raises(kind, match=re.escape(words)) as caught:
        skewext.write_bucketed(**{**usual, **arguments})
    assert isinstance(caught.value, PySparkException)
    assert not spark.catalog.tableExists("t1")


def test_streams_are_refused(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load()
    with pytest.raises(AnalysisException, match="df is a streaming DataFrame"):
        skewext.write_bucketed(stream, "t0", "value", 4)


@pytest.mark.slow
def test_explain_shows_whose_order_is_used(spark: SparkSession) -> None:
    for table, writes in (("t0", 1), ("t1", 2)):
        for _ in range(writes):
            skewext.write_bucketed(visits(spark), table, "user", 2, mode="append")
    joined = spark.table("t0").join(spark.table("t1").select("user").hint("merge"), "user")
    (join,) = skewext.explain(joined).joins
    assert join.operators == ["SortMergeJoin"]
    one, several = (str(each.read) for each in join.inputs)
    assert "in the order of its files, without a sort" in one
    assert "order of its files not used, as a bucket has several files" in several


KINDS = {
    "bigint": (0, 1, 2, 3, -1, -(2**63), 2**63 - 1),
    "string": ("", "a", "ab", "longer than eight", "longer than nine", "ä"),
    "double": (0.0, -0.0, 1.5, float("nan"), float("-inf")),
    "date": (datetime.date(1969, 12, 31), datetime.date(2024, 2, 29)),
}


@dataclass
class Stored:
    """A table: its columns besides the key, how it is stored, and what each write brought."""

    buckets: int
    sort: list[str]
    partitioned: bool
    stock: bool
    writes: list[list[tuple[Any, ...]]]


@dataclass
class Case:
    kinds: list[str]
    tables: list[Stored]
    how: str
    split: bool


@st.composite
def cases(draw: st.DrawFn) -> Case:
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=2))
    keys = [f"k{n}" for n in range(len(kinds))]
    buckets = draw(st.sampled_from([1, 2, 4]))
    return Case(
        kinds,
        [draw(_stored(kinds, keys, buckets)) for _ in range(draw(st.integers(2, 3)))],
        draw(st.sampled_from(["inner", "left", "full", "multi"])),
        draw(st.booleans()),
    )


@st.composite
def _stored(draw: st.DrawFn, kinds: Sequence[str], keys: list[str], buckets: int) -> Stored:
    cells = [st.one_of(st.sampled_from(KINDS[kind]), st.none()) for kind in kinds]
    row = st.tuples(*cells, st.integers(0, 9), st.sampled_from(["x", "y", None]))
    return Stored(
        buckets,
        draw(st.sampled_from([keys, keys, [*keys, "v"], [*keys[::-1]], []])),
        draw(st.booleans()),
        draw(st.booleans()),
        draw(st.lists(st.lists(row, max_size=12), min_size=1, max_size=3)),
    )


@pytest.mark.slow
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize="SKEWEXT_EXAMPLES" not in os.environ,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(case=cases())
def test_random_tables(spark: SparkSession, case: Case) -> None:
    drop_tables(spark)
    keys = [f"k{n}" for n in range(len(case.kinds))]
    frames = []
    for n, stored in enumerate(case.tables):
        store(spark, f"t{n}", keys, case.kinds, stored)
        columns = [*keys, sf.col("v").alias(f"v{n}"), sf.col("p").alias(f"p{n}")]
        frames.append(spark.table(f"t{n}").select(*columns))

    def joined() -> DataFrame:
        if case.how == "multi":
            return skewext.multi_full_join(*frames, on=keys)
        first, *others = frames
        for other in others:
            first = first.join(other, keys, case.how)
        return first

    with changed(spark, {**INTERPRETED, **(SPLIT_ALL if case.split else {})}):
        actual = joined().collect()
        with setting(spark, "spark.skewext.enabled", "false"):
            off = joined().collect()
    assert_same_rows(actual, off)
    assert_same_rows(actual, duck(spark, keys, case))


def store(
    spark: SparkSession, table: str, keys: list[str], kinds: list[str], stored: Stored
) -> None:
    schema = ", ".join(f"{name} {kind}" for name, kind in zip(keys, kinds))
    for rows in stored.writes:
        df = spark.createDataFrame(rows, f"{schema}, v bigint, p string").repartition(2)
        partition_by = ["p"] if stored.partitioned else []
        if stored.stock:
            writer = df.write.mode("append").bucketBy(stored.buckets, keys)
            if stored.sort:
                writer = writer.sortBy(stored.sort)
            writer.partitionBy(partition_by).saveAsTable(table)
        else:
            skewext.write_bucketed(
                df,
                table,
                keys,
                stored.buckets,
                sort=stored.sort or False,
                mode="append",
                partition_by=partition_by or None,
            )


def duck(spark: SparkSession, keys: list[str], case: Case) -> list[tuple[Any, ...]]:
    """The same join by DuckDB, of the files as they are."""
    with duckdb.connect() as connection:
        for n, stored in enumerate(case.tables):
            types = {"bigint": "BIGINT", "string": "VARCHAR", "double": "DOUBLE", "date": "DATE"}
            columns = [f"{key} {types[kind]}" for key, kind in zip(keys, case.kinds)]
            declared = ", ".join([*columns, f"v{n} BIGINT", f"p{n} VARCHAR"])
            connection.execute(f"CREATE TABLE t{n} ({declared})")
            for path in paths(spark, f"t{n}"):
                own = re.findall(r"/p=([^/]+)/", path)
                text = "p"
                if stored.partitioned:
                    text = "NULL" if own[0].startswith("__HIVE") else f"'{own[0]}'"
                selected = ", ".join([*keys, "v", text])
                connection.execute(
                    f"INSERT INTO t{n} SELECT {selected} FROM read_parquet('{path}', "
                    f"hive_partitioning = false)"
                )
        kind = {"multi": "FULL OUTER", "full": "FULL OUTER"}.get(case.how, case.how.upper())
        using = ", ".join(keys)
        chain = "t0" + "".join(
            f" {kind} JOIN t{n} USING ({using})" for n in range(1, len(case.tables))
        )
        values = ", ".join([*keys, *(f"v{n}, p{n}" for n in range(len(case.tables)))])
        return connection.execute(f"SELECT {values} FROM {chain}").fetchall()


@pytest.mark.slow
def test_after_appends_nothing_is_shuffled_and_skewext_sorts_nothing(spark: SparkSession) -> None:
    for table in ("t0", "t1", "t2"):
        for _ in range(3):
            skewext.write_bucketed(visits(spark), table, "user", 4, mode="append")
    frames = [spark.table(f"t{n}").select("user", sf.col("visit").alias(f"v{n}")) for n in range(3)]
    pair = frames[0].join(frames[1], "user")
    three = skewext.multi_full_join(*frames, on="user")
    for joined in (pair, three):
        assert not {"Exchange", "Sort", "SortedFiles"} & set(node_names(joined))
    merged = frames[0].join(frames[1].hint("merge"), "user")
    assert [node_names(merged).count(n) for n in ("Exchange", "Sort")] == [0, 2]
    assert pair.count() == visits(spark).join(visits(spark), "user").count() * 9


@pytest.mark.slow
def test_a_skewed_bucket_is_read_by_several_tasks(spark: SparkSession) -> None:
    hot = visits(spark).withColumn("user", sf.expr("if(visit % 4 > 0, 7, user)"))
    hot.write.bucketBy(4, "user").saveAsTable("t0")
    skewext.write_bucketed(visits(spark, 100).where("user > 2"), "t1", "user", 4)
    with changed(spark, SPLIT_ALL):
        first, second = (
            spark.table(t).select("user", sf.col("visit").alias(t)) for t in ("t0", "t1")
        )
        joined = first.join(second, "user", "full")
        rows = joined.collect()
    (skew,) = skewext.explain(joined).joins[0].skew
    assert skew.status == "split" and skew.pieces > 1
    with duckdb.connect() as connection:
        files = [
            f"read_parquet({paths(spark, t)}, hive_partitioning = false)" for t in ("t0", "t1")
        ]
        expected = connection.execute(
            "SELECT user, t0.visit, t1.visit "
            f"FROM {files[0]} AS t0 FULL OUTER JOIN {files[1]} AS t1 USING (user)"
        ).fetchall()
    assert_same_rows(rows, expected)


def test_unknown_counts_of_written_rows() -> None:
    written = skewext.WrittenBuckets("spark_catalog.default.t", [], [], 5.0, known=False)
    assert "written" in str(written)
    assert "not known" in str(written)
    assert "0 rows" not in str(written)
    # What tasks have counted is known all the same.
    bucket = skewext.Bucket(0, 0, 1500, 0)
    counted = skewext.WrittenBuckets("t", [bucket], [], 5.0, known=False)
    assert counted.rows == 1500 and "1,500 rows written" in str(counted)
