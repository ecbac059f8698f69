"""Inputs of several sessions of one SparkContext, as in foreachBatch: joined as Spark does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from multisets import assert_same_rows
from plans import plan_of
from pyspark.sql import DataFrame, SparkSession

import pyspark_skewext as skewext
from pyspark_skewext import _jvm

pytestmark = pytest.mark.classic("is about several sessions of one JVM")


def new_session(spark: SparkSession) -> SparkSession:
    return spark.newSession()


def clone_session(spark: SparkSession) -> SparkSession:
    session: Any = spark
    return SparkSession(session.sparkContext, session._jsparkSession.cloneSession())


def one(spark: SparkSession) -> DataFrame:
    return spark.sql("SELECT * FROM VALUES (1, 'a'), (2, 'b'), (2, 'c'), (null, 'd') AS t(k, v)")


def two(spark: SparkSession) -> DataFrame:
    return spark.sql("SELECT * FROM VALUES (2, 'x'), (3, 'y'), (null, 'z') AS t(k, w)")


def check(left: DataFrame, right: DataFrame) -> None:
    """All that takes two inputs, against Spark's own join of them."""
    expected = left.join(right, "k", "full")
    joined = skewext.multi_full_join(left, right, on="k")
    assert "MultiFullJoin" in plan_of(joined)
    assert skewext.explain(joined).joins[0].operators == ["MultiFullJoin"]
    assert_same_rows(joined, expected)
    assert_same_rows(
        skewext.multi_join(left, right, on="k", how="left"), left.join(right, "k", "left")
    )
    by_technique = skewext.skew_join(left, right, "k", "full", technique="adaptive")
    assert_same_rows(by_technique, expected)
    assert "adaptive" in skewext.explain(by_technique).joins[0].origin.text
    report = skewext.skew_report(left, "k", right, partitions=3)
    assert report.df.rows == left.count()
    assert report.other is not None and report.other.rows == right.count()


@pytest.mark.slow
@pytest.mark.parametrize("other", [new_session, clone_session])
def test_two_sessions(spark: SparkSession, other: Callable[[SparkSession], SparkSession]) -> None:
    session = other(spark)
    check(one(spark), two(session))
    check(one(session), two(spark))
    joined = skewext.multi_full_join(one(session), two(spark), on="k")
    assert joined.sparkSession is not spark
    joined.collect()
    assert "MultiFullJoin" in str(skewext.query_report(joined))


@pytest.mark.slow
def test_foreach_batch(spark: SparkSession, tmp_path: Path) -> None:
    files = str(tmp_path / "files")
    one(spark).write.parquet(files)
    static = two(spark)
    batches = []

    def each(batch: DataFrame, number: int) -> None:
        check(batch, static)
        check(static, batch)
        joined = skewext.multi_full_join(batch, static, on="k")
        joined.collect()
        assert "MultiFullJoin" in str(skewext.query_report(joined))
        mode = "append" if batches else "overwrite"
        skewext.write_bucketed(joined, "of_batches", by="k", buckets=2, mode=mode)
        batches.append(number)

    query = (
        spark.readStream.schema("k INT, v STRING")
        .parquet(files)
        .writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .foreachBatch(each)
        .start()
    )
    query.awaitTermination()
    assert batches == [0]
    written = spark.table("of_batches").select("k", "v", "w")
    assert_same_rows(written, one(spark).join(static, "k", "full"))
    spark.sql("DROP TABLE of_batches")


def test_a_session_of_the_inputs_has_the_operator(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a stream that began before the operator was registered in its session."""
    clone = clone_session(spark)
    real = _jvm.facade_of(spark)

    class Facade:
        """Says of the clone that it has no operator; all else is the real one."""

        def isOperatorAvailable(self, session: Any) -> bool:  # noqa: N802
            return not session.equals(clone._jsparkSession)  # type: ignore[attr-defined]

        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

    monkeypatch.setattr(_jvm, "facade_of", lambda _: Facade())
    check(one(clone), two(spark))
    with pytest.raises(RuntimeError, match="this session does not use it"):
        skewext.multi_full_join(one(clone), two(clone), on="k")
