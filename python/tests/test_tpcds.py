"""TPC-DS with every join rewritten that can be: the answers of stock Spark, and of DuckDB.

`SKEWEXT_TPCDS=all` (`make test-spark`) takes all of the 99 queries, `make test-all` those in which
most is joined, and `make test` some of these.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pytest
from amount import some
from harness.tpc import for_spark
from multisets import assert_nearly_same_rows
from pyspark.sql import SparkSession
from stock import INTERPRETED, setting
from tpcds import TABLES, Tpcds, made_tpcds

_QUICK = [5, 17, 29, 38, 40, 51, 66, 72, 75, 77, 78, 80, 87, 97]
_QUERIES = range(1, 100) if os.environ.get("SKEWEXT_TPCDS") == "all" else some(4, _QUICK)

# So small tables would all be broadcast.
_SHUFFLED = {"spark.sql.autoBroadcastJoinThreshold": -1}

# Joins of subqueries of one row each, without a key.
_NOT_REWRITTEN = {9, 28}
# A quotient of 1.025, rounded to two digits: 1.03 as a decimal, as in Spark, 1.02 as a double.
_ROUNDED = {78}


@pytest.fixture(scope="module")
def tpcds(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tpcds]:
    with made_tpcds(tmp_path_factory.mktemp("tpcds"), 0.01) as made:
        for table in TABLES:
            spark.read.parquet(str(made.file(table))).createOrReplaceTempView(table)
        yield made
        for table in TABLES:
            spark.catalog.dropTempView(table)


@pytest.mark.slow
@pytest.mark.parametrize("number", _QUERIES)
def test_query(
    spark: SparkSession,
    tpcds: Tpcds,
    number: int,
    record_property: Callable[[str, object], None],
) -> None:
    query = tpcds.query(number)
    ours, joins = run(spark, for_spark(query), _SHUFFLED)
    stock, none = run(spark, for_spark(query), {"spark.skewext.enabled": "false", **_SHUFFLED})
    record_property("joins", joins)
    record_property("rows", len(ours))
    assert none == 0
    # So little data has no rows for some of them.
    assert ours or number not in _QUICK
    assert joins > 0 or number in _NOT_REWRITTEN
    assert_nearly_same_rows(ours, stock, relative=1e-12, absolute=1e-12)
    absolute = 0.0101 if number in _ROUNDED else 1e-6
    assert_nearly_same_rows(ours, tpcds.answer(query), relative=1e-6, absolute=absolute)


def run(spark: SparkSession, query: str, conf: Mapping[str, object]) -> tuple[list[Any], int]:
    """The rows, and the number of skewext's joins in the plan."""
    with ExitStack() as settings:
        for key, value in {**INTERPRETED, **conf}.items():
            settings.enter_context(setting(spark, key, value))
        df = spark.sql(query)
        rows = df.collect()
        plan = df._jdf.queryExecution().executedPlan().toString()
        return rows, plan.count("MultiFullJoin") + plan.count("BuildProbeJoin")
