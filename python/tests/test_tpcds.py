"""TPC-DS with every join rewritten that can be: the answers of stock Spark, and of DuckDB.

`SKEWEXT_TPCDS=all` (`make test-spark`) takes all of the 99 queries, else those in which most is
joined.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from multisets import assert_nearly_same_rows
from pyspark.sql import SparkSession
from stock import setting
from tpcds import TABLES, Tpcds, made_tpcds

_QUICK = [4, 5, 11, 17, 25, 29, 40, 49, 51, 64, 72, 75, 77, 78, 80, 97]
_QUERIES = range(1, 100) if os.environ.get("SKEWEXT_TPCDS") == "all" else _QUICK

_FORCED = {
    "spark.skewext.multiJoin.rewrite.minInputs": 2,
    "spark.skewext.multiJoin.rewrite.mixed.enabled": "true",
}


@pytest.fixture(scope="module")
def tpcds(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tpcds]:
    with made_tpcds(tmp_path_factory.mktemp("tpcds"), 0.01) as made:
        for table in TABLES:
            spark.read.parquet(str(made.file(table))).createOrReplaceTempView(table)
        yield made
        for table in TABLES:
            spark.catalog.dropTempView(table)


@pytest.mark.parametrize("number", _QUERIES)
def test_query(spark: SparkSession, tpcds: Tpcds, number: int) -> None:
    query = tpcds.query(number)
    # Spark takes double quotes for those of a string.
    for_spark = query.replace('"', "`")
    with ExitStack() as settings:
        for key, value in _FORCED.items():
            settings.enter_context(setting(spark, key, value))
        ours = spark.sql(for_spark).collect()
    with setting(spark, "spark.skewext.enabled", False):
        stock = spark.sql(for_spark).collect()
    assert_nearly_same_rows(ours, stock, relative=1e-12, absolute=1e-12)
    assert_nearly_same_rows(ours, tpcds.answer(query), relative=1e-6, absolute=1e-6)
