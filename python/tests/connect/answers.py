"""Joins and their answers, as they are with any session."""

from __future__ import annotations

import io
import runpy
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

import pyspark_skewext as skewext


def inputs(spark: SparkSession) -> list[DataFrame]:
    return [
        spark.createDataFrame([(1, "a1"), (2, "a2"), (2, "a3"), (None, "a0")], "k int, v string"),
        spark.createDataFrame([(1, "b1"), (3, "b3"), (None, "b0")], "k int, v string"),
        spark.createDataFrame([(1, 1.0), (3, 2.0), (4, None)], "id int, w double"),
    ]


def rows(df: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in df.collect()), key=repr)


FULL = [
    (1, "a1", "b1", 1.0, [0, 1, 2]),
    (2, "a2", None, None, [0]),
    (2, "a3", None, None, [0]),
    (3, None, "b3", 2.0, [1, 2]),
    (4, None, None, None, [2]),
    (None, "a0", None, None, [0]),
    (None, None, "b0", None, [1]),
]


def check_joins(spark: SparkSession) -> None:
    a, b, c = inputs(spark)
    joined = skewext.multi_full_join(
        a, b, (c, "id"), on="K", suffixes=["_a", "_b", None], indicator="has"
    )
    assert joined.columns == ["K", "v_a", "v_b", "w", "has"], joined.columns
    assert rows(joined) == sorted(FULL, key=repr), rows(joined)
    plain = [row[:4] for row in FULL]
    c = c.withColumnRenamed("id", "k")
    expected: list[tuple[Any, Callable[[tuple[Any, ...]], bool]]] = [
        ("left", lambda row: row[1] is not None),
        ("inner", lambda row: row[0] == 1),
        (["optional", "required", "optional"], lambda row: row[2] is not None),
    ]
    for how, is_in in expected:
        found = rows(skewext.multi_join(a, b, c, on="k", how=how))
        assert found == sorted(filter(is_in, plain), key=repr), (how, found)
    roles = ["excluded", "optional", "optional"]
    found = rows(skewext.multi_join(a, b, c, on=["k"], how=roles))
    assert found == sorted([(3, "b3", 2.0), (4, None, None), (None, "b0", None)], key=repr), found
    # Of one DataFrame several times, and as part of a query.
    twice = skewext.multi_full_join(a, a, on="k").groupBy("k").count()
    assert rows(twice) == sorted([(1, 1), (2, 4), (None, 2)], key=repr), rows(twice)


TECHNIQUES: dict[str, dict[str, Any]] = {
    "auto": {},
    "none": {},
    "adaptive": {"factor": 2, "threshold": "1k"},
    "broadcast": {},
    "broadcast_map": {"side": "right"},
    "iterative_broadcast": {"chunks": 2},
    "salted": {"hot_keys": [7], "salts": 3},
}


def sides(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    """Half the rows of the one have one key; each side has keys that the other lacks, and nulls."""
    left = spark.range(60).selectExpr("if(id % 2 = 0, 7, nullif(id, 9)) AS k", "id AS v")
    right = spark.range(5, 30, 2).selectExpr("nullif(id, 11) AS k", "id * 2 AS v")
    return left, right


def check_skew_joins(spark: SparkSession) -> None:
    left, right = sides(spark)
    for technique, options in TECHNIQUES.items():
        for how in ("full", "left_anti"):
            joined = skewext.skew_join(left, right, "k", how, technique, **options)
            stock = left.join(right, "k", how)
            assert joined.columns == stock.columns, (technique, how, joined.columns)
            assert rows(joined) == rows(stock), (technique, how)
    # By a condition; columns of either side are told apart as ever.
    condition = left.k == right.k
    joined = skewext.skew_join(left, right, [condition, left.v > 3], "inner", "broadcast_map")
    stock = left.join(right, [condition, left.v > 3], "inner")
    assert rows(joined.select(left.v, right.v)) == rows(stock.select(left.v, right.v))
    # Keys that the server has to find.
    joined = skewext.skew_join(left, right, ["k"], "left", "salted")
    assert rows(joined) == rows(left.join(right, ["k"], "left"))


def plan_of(df: DataFrame) -> str:
    printed = io.StringIO()
    with redirect_stdout(printed):
        df.explain()
    return printed.getvalue()


def check_buckets(spark: SparkSession) -> None:
    visits = spark.range(1000).selectExpr("id % 97 AS user", "id AS visit").repartition(5)
    written = skewext.write_bucketed(visits, "visits", by="USER", buckets=4)
    assert written.table == "spark_catalog.default.visits", written
    assert [bucket.files for bucket in written.buckets] == [1] * 4, written
    assert written.rows == 1000 and written.bytes > 1000 and not written.skewed, written
    assert rows(spark.table("visits")) == rows(visits)
    more = skewext.write_bucketed(visits.where("user < 5"), "visits", "user", 4, mode="append")
    expected = visits.where("user < 5").count()
    assert (more.files, more.rows, more.known) == (
        len([b for b in more.buckets if b.rows]),
        expected,
        True,
    )
    ignored = skewext.write_bucketed(visits, "default.visits", "user", 4, mode="ignore")
    assert (ignored.files, ignored.rows, len(ignored.buckets)) == (0, 0, 4), ignored
    assert spark.table("visits").count() == 1000 + expected
    again = skewext.write_bucketed(visits, "visits", "user", 4, mode="overwrite")
    assert (again.files, again.rows, spark.table("visits").count()) == (4, 1000, 1000)

    # Spark takes the buckets for what they are.
    users = spark.range(97).selectExpr("id AS user", "concat('u', id) AS name")
    skewext.write_bucketed(users, "`users`", by="user", buckets=4, compression="zstd")
    joined = spark.table("visits").hint("merge").join(spark.table("users"), "user")
    assert "Exchange" not in plan_of(joined), plan_of(joined)
    assert joined.count() == 1000

    # In folders, of which one is that of NULL, and with a bucket that has nearly all rows.
    skewed = spark.range(300).selectExpr(
        "if(id < 290, 1, id) AS k", "nullif(string(id % 3), '0') AS part", "id AS v"
    )
    folders = skewext.write_bucketed(
        skewed.repartition(7), "folders", "k", 8, sort=False, partition_by="part", format="orc"
    )
    assert folders.rows == 300 and len(folders.skewed) == 1, folders
    assert folders.buckets[folders.skewed[0]].files == 3, folders
    assert rows(spark.table("folders").select("k", "part", "v")) == rows(skewed)

    # Rows are where the type of the table's column puts them.
    spark.sql(
        "CREATE TABLE codes (code CHAR(4), n BIGINT) USING parquet "
        "CLUSTERED BY (code) SORTED BY (code) INTO 3 BUCKETS"
    )
    codes = spark.range(200).selectExpr("concat('c', id % 50) AS code", "int(id) AS n")
    appended = skewext.write_bucketed(codes.repartition(6), "codes", "code", 3, mode="append")
    assert [bucket.files for bucket in appended.buckets] == [1] * 3, appended
    assert appended.rows == 200

    nothing = skewext.write_bucketed(users.where("user < 0"), "nothing", "user", 2)
    assert (nothing.files, nothing.rows, nothing.known) == (0, 0, True), nothing
    fails(
        AnalysisException,
        "already exists",
        lambda: skewext.write_bucketed(users, "users", "user", 4),
    )
    fails(
        AnalysisException,
        "does not match",
        lambda: skewext.write_bucketed(users, "users", "user", 5, mode="append"),
    )
    fails(
        AnalysisException,
        "not of 'delta'",
        lambda: skewext.write_bucketed(users, "t", "user", 4, format="delta"),
    )
    fails(
        AnalysisException,
        "not in the session catalog",
        lambda: skewext.write_bucketed(users, "elsewhere.a.t", "user", 4),
    )
    fails(AnalysisException, "does not have", lambda: skewext.write_bucketed(users, "t", "usr", 4))


def checked_by_notebook(spark: SparkSession) -> list[str]:
    """What the notebook for Databricks finds that does not work."""
    script = Path(__file__).parents[3] / "examples" / "databricks_check.py"
    found = runpy.run_path(str(script), init_globals={"spark": spark})["found"]
    assert len(found) == 12, found
    return [what for what, result, _ in found if result != "yes"]


def fails(kind: type[Exception], sentence: str, body: Callable[[], object]) -> None:
    said = "no error"
    try:
        body()
    except kind as error:
        said = str(error)
    assert sentence in said, said
