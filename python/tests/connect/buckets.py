"""Tables that the server writes by bucket."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from multisets import assert_same_rows
from plans import plan_of
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

import pyspark_skewext as skewext


@pytest.fixture(autouse=True)
def _no_tables(spark: SparkSession) -> Iterator[None]:
    yield
    for table in spark.catalog.listTables():
        spark.sql(f"DROP TABLE IF EXISTS {table.name}")


def visits_of(spark: SparkSession) -> DataFrame:
    return spark.range(1000).selectExpr("id % 97 AS user", "id AS visit").repartition(5)


def users_of(spark: SparkSession) -> DataFrame:
    return spark.range(97).selectExpr("id AS user", "concat('u', id) AS name")


def test_every_mode(spark: SparkSession) -> None:
    visits = visits_of(spark)
    written = skewext.write_bucketed(visits, "visits", by="USER", buckets=4)
    assert written.table == "spark_catalog.default.visits", written
    assert [bucket.files for bucket in written.buckets] == [1] * 4, written
    assert written.rows == 1000 and written.bytes > 1000 and not written.skewed, written
    assert_same_rows(spark.table("visits"), visits)
    more = skewext.write_bucketed(visits.where("user < 5"), "visits", "user", 4, mode="append")
    expected = visits.where("user < 5").count()
    files = len([bucket for bucket in more.buckets if bucket.rows])
    assert (more.files, more.rows, more.known) == (files, expected, True)
    ignored = skewext.write_bucketed(visits, "default.visits", "user", 4, mode="ignore")
    assert (ignored.files, ignored.rows, len(ignored.buckets)) == (0, 0, 4), ignored
    assert spark.table("visits").count() == 1000 + expected
    again = skewext.write_bucketed(visits, "visits", "user", 4, mode="overwrite")
    assert (again.files, again.rows, spark.table("visits").count()) == (4, 1000, 1000)
    nothing = skewext.write_bucketed(visits.where("user < 0"), "nothing", "user", 2)
    assert (nothing.files, nothing.rows, nothing.known) == (0, 0, True), nothing


def test_spark_joins_the_buckets_without_a_shuffle(spark: SparkSession) -> None:
    written = skewext.write_bucketed(visits_of(spark), "visits", "user", 4)
    assert (written.known, written.rows) == (True, 1000)
    assert len(spark.table("visits").inputFiles()) == 4
    skewext.write_bucketed(users_of(spark), "`users`", by="user", buckets=4, compression="zstd")
    joined = spark.table("visits").hint("merge").join(spark.table("users"), "user")
    assert "Exchange" not in plan_of(joined), plan_of(joined)
    assert joined.count() == 1000


def test_a_null_folder_and_a_large_bucket(spark: SparkSession) -> None:
    skewed = spark.range(300).selectExpr(
        "if(id < 290, 1, id) AS k", "nullif(string(id % 3), '0') AS part", "id AS v"
    )
    folders = skewext.write_bucketed(
        skewed.repartition(7), "folders", "k", 8, sort=False, partition_by="part", format="orc"
    )
    assert folders.rows == 300 and len(folders.skewed) == 1, folders
    assert folders.buckets[folders.skewed[0]].files == 3, folders
    assert_same_rows(spark.table("folders").select("k", "part", "v"), skewed)


def test_rows_are_where_the_type_of_the_column_puts_them(spark: SparkSession) -> None:
    spark.sql(
        "CREATE TABLE codes (code CHAR(4), n BIGINT) USING parquet "
        "CLUSTERED BY (code) SORTED BY (code) INTO 3 BUCKETS"
    )
    codes = spark.range(200).selectExpr("concat('c', id % 50) AS code", "int(id) AS n")
    appended = skewext.write_bucketed(codes.repartition(6), "codes", "code", 3, mode="append")
    assert [bucket.files for bucket in appended.buckets] == [1] * 3, appended
    assert appended.rows == 200


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("already exists", {}),
        ("does not match", {"buckets": 5, "mode": "append"}),
        ("not of 'delta'", {"table": "t", "format": "delta"}),
        ("not in the session catalog", {"table": "elsewhere.a.t"}),
        ("does not have", {"by": "usr"}),
    ],
)
def test_refused(spark: SparkSession, words: str, arguments: dict[str, Any]) -> None:
    users = users_of(spark)
    skewext.write_bucketed(users, "users", "user", 4)
    usual: dict[str, Any] = {"df": users, "table": "users", "by": "user", "buckets": 4}
    with pytest.raises(AnalysisException, match=re.escape(words)):
        skewext.write_bucketed(**{**usual, **arguments})
