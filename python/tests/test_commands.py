"""A DataFrame that holds a command has run it when it was made: nothing of ours runs it again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import pyspark_skewext as skewext

NAME = "skewext.test.command"

USES: dict[str, Callable[[DataFrame], Any]] = {
    "explain": skewext.explain,
    "multi_full_join": lambda df: skewext.multi_full_join(df, df, on="key").collect(),
    # Spark itself cannot join what a command has given with itself.
    "skew_join": lambda df: skewext.skew_join(
        df, df.sparkSession.sql(f"SET {NAME}"), "key"
    ).collect(),
    "skew_report": lambda df: skewext.skew_report(df, "key", df),
}


@pytest.mark.parametrize("use", USES)
def test_a_command_is_not_run_again(spark: SparkSession, use: str) -> None:
    command = spark.sql(f"SET {NAME} = first")
    spark.conf.set(NAME, "second")
    try:
        USES[use](command)
        assert spark.conf.get(NAME) == "second"
    finally:
        spark.conf.unset(NAME)


def test_its_rows_are_those_that_it_gave(spark: SparkSession) -> None:
    spark.range(3).createOrReplaceTempView("before_it")
    tables = spark.sql("SHOW VIEWS")
    spark.range(3).createOrReplaceTempView("after_it")
    try:
        joined = skewext.multi_full_join(tables, tables, on="viewName", suffixes=["_1", "_2"])
        names = {row.viewName for row in joined.collect()}
        assert names == {row.viewName for row in tables.collect()}
        report = skewext.skew_report(tables, "viewName")
        assert report.df.rows == tables.count()
    finally:
        for name in ("before_it", "after_it"):
            spark.catalog.dropTempView(name)
