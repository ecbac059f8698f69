"""The queries that `bench/faults.py` runs while a cluster breaks: joins, techniques and buckets.

Every case makes a DataFrame. Its columns have the same values in each attempt, except those that
begin with `u`: of these only the number of values is compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyspark_skewext as skewext
from harness.faults import JOIN, MAP, MARKED, MARKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SETTINGS = {
    "spark.sql.shuffle.partitions": "6",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    # A few thousand rows are a skewed partition.
    "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": "24k",
    "spark.sql.adaptive.skewJoin.skewedPartitionFactor": "2",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "16k",
    "spark.sql.adaptive.coalescePartitions.minPartitionSize": "1k",
}

BUCKETED = ("read_0", "read_1", "read_2")
FILES = ("file_0", "file_1", "file_2")
MAPS = 6
#: Where keys are marked: smaller blocks, none of which pieces have to share, so that less is read.
MARKED_MAPS = 24
#: Rows of each input of the join that takes seconds.
LONG = 40_000
HOT = 7


@dataclass(frozen=True)
class Case:
    """A query, whether its inputs may be unstable, and in which stages faults can happen."""

    name: str
    query: Callable[[SparkSession, bool], DataFrame]
    unstable: bool = True
    stages: tuple[str, ...] = (MAP, JOIN)
    #: Text in the plan, or in its explanation, with the extension on.
    fires: str = "MultiFullJoin"
    #: Whether the query is written to a table, which is then read.
    writes: bool = False
    #: Makes the tables of the query, unless they exist.
    prepare: Callable[[SparkSession], object] | None = None
    #: Whether it takes seconds, as long as a decommissioned executor takes to leave.
    long: bool = False


def table(
    spark: SparkSession,
    number: int,
    rows: int,
    hot: int = 0,
    unstable: bool = False,
    maps: int = MAPS,
    keys: int = 1500,
) -> DataFrame:
    """Rows with the hot key at the end; one row in eleven has a null key."""
    from pyspark.sql import functions as F

    number_of = F.col("id")
    key = F.when(number_of >= rows, F.lit(HOT)).otherwise((number_of * 7 + number) % keys)
    made = spark.range(0, rows + hot, 1, maps)
    if unstable:
        # Rows come to these tasks in the order in which they are fetched.
        made = made.repartition(maps)
    made = made.select(
        F.when(number_of % 11 != number, key).cast("long").alias("k"),
        number_of.alias(f"v{number}"),
        F.sha2(number_of.cast("string"), 256).alias(f"s{number}"),
    )
    if unstable:
        made = made.withColumn(f"u{number}", F.rand(number))
        made = made.withColumn(f"um{number}", F.monotonically_increasing_id())
    return made


def _operator(spark: SparkSession, unstable: bool) -> DataFrame:
    inputs = [table(spark, n, 1500 + 300 * n, unstable=unstable) for n in range(4)]
    return skewext.multi_full_join(*inputs, on="k")


def _long_operator(spark: SparkSession, unstable: bool) -> DataFrame:
    """A join whose tasks take a second or more, as each row is hashed many times."""
    from pyspark.sql import functions as F

    inputs = [table(spark, n, LONG, unstable=unstable, keys=LONG) for n in range(4)]
    joined = skewext.multi_full_join(*inputs, on="k")
    times = F.sequence(F.lit(1), F.lit(25))
    key = F.coalesce(F.col("k").cast("string"), F.lit(""))
    return joined.withColumn("hashed", F.aggregate(times, key, lambda last, _: F.sha2(last, 256)))


def _split_operator(spark: SparkSession, unstable: bool) -> DataFrame:
    inputs = [table(spark, n, 1200, 5000 * (n == 0), unstable) for n in range(3)]
    return skewext.multi_full_join(*inputs, on="k")


def _aggregated(spark: SparkSession, unstable: bool) -> DataFrame:
    """Survivors of dropDuplicates and sums of doubles are others when tasks run again."""
    from pyspark.sql import functions as F

    big = table(spark, 0, 1500, 5000, unstable)
    one = table(spark, 1, 3000, unstable=unstable)
    if unstable:
        one = one.select("k", F.col("u1"), F.col("v1").alias("uv1")).dropDuplicates(["k"])
    else:
        one = one.groupBy("k").agg(F.sum("v1").alias("v1"))
    return skewext.multi_full_join(big, one, on="k")


def _spark_join(how: str, hot: int, rows: int = 6000) -> Callable[[SparkSession, bool], DataFrame]:
    def query(spark: SparkSession, unstable: bool) -> DataFrame:
        sides = [table(spark, n, 1500, rows * (n == hot), unstable) for n in range(2)]
        return sides[0].join(sides[1], "k", how)

    return query


def _two_sides(
    how: str, condition: str = "", hot: int = -1
) -> Callable[[SparkSession, bool], DataFrame]:
    """A join by key and by a condition of both sides."""

    def query(spark: SparkSession, unstable: bool) -> DataFrame:
        from pyspark.sql import functions as F

        left, right = (table(spark, n, 2000, 6000 * (n == hot), unstable) for n in range(2))
        if not condition:
            return left.join(right, "k", how)
        right = right.withColumnRenamed("k", "k1")
        return left.join(right, F.expr(f"k = k1 AND {condition}"), how)

    return query


def _existence(spark: SparkSession, unstable: bool) -> DataFrame:
    """Each row of the left side stays for a value of its own or for a match."""
    for n in range(2):
        table(spark, n, 2000, 6000 * (n == 0), unstable).createOrReplaceTempView(f"side_{n}")
    return spark.sql("SELECT * FROM side_0 WHERE v0 % 5 = 0 OR k IN (SELECT k FROM side_1)")


def _one_stage(spark: SparkSession, unstable: bool) -> DataFrame:
    """Three joins on one key, in one stage."""
    first, *others = (table(spark, n, 1500 + 300 * n, unstable=unstable) for n in range(4))
    for how, other in zip(("left", "inner", "left_anti"), others):
        first = first.join(other.where("k % 3 > 0") if how == "left_anti" else other, "k", how)
    return first


def _marked_operator(spark: SparkSession, unstable: bool) -> DataFrame:
    inputs = [table(spark, n, 1200, 7000 * (n == 0), unstable, maps=MARKED_MAPS) for n in range(3)]
    return skewext.multi_full_join(*inputs, on="k")


def _marked_full(spark: SparkSession, unstable: bool) -> DataFrame:
    left, right = (
        table(spark, n, 1500, 8000 * (n == 0), unstable, maps=MARKED_MAPS) for n in range(2)
    )
    return left.join(right, "k", "full")


def _marked_anti(spark: SparkSession, unstable: bool) -> DataFrame:
    """Of the right side only keys are shuffled: many, as equal ones take hardly any bytes."""
    from pyspark.sql import functions as F

    one_partition = F.pmod(F.hash("k"), F.lit(6)) == 3
    many = spark.range(1000, 400_000, 1, MARKED_MAPS).withColumnRenamed("id", "k")
    right = many.where(one_partition | (F.col("k") % 50 == 0))
    return table(spark, 0, 3000, 0, unstable).join(right, "k", "left_anti")


def _technique(technique: skewext.Technique, how: str) -> Callable[[SparkSession, bool], DataFrame]:
    def query(spark: SparkSession, unstable: bool) -> DataFrame:
        left, right = table(spark, 0, 1500, 5000, unstable), table(spark, 1, 1200, 2, unstable)
        return skewext.skew_join(left, right, "k", how, technique)

    return query


def _written(spark: SparkSession, unstable: bool) -> DataFrame:
    return table(spark, 0, 3000, 2000, unstable)


def _bucketed(spark: SparkSession, unstable: bool) -> DataFrame:
    return skewext.multi_full_join(*map(spark.table, BUCKETED), on="k")


def _make_buckets(spark: SparkSession) -> None:
    for n, name in enumerate(BUCKETED):
        if not spark.catalog.tableExists(name):
            frame = table(spark, n, 1500, 5000 * (n == 0))
            skewext.write_bucketed(frame, name, by="k", buckets=6)


def _of_files(spark: SparkSession, unstable: bool) -> DataFrame:
    return skewext.multi_full_join(*map(spark.table, FILES), on="k")


def _make_files(spark: SparkSession) -> None:
    for n, name in enumerate(FILES):
        if not spark.catalog.tableExists(name):
            table(spark, n, 1500, 5000 * (n == 0)).write.saveAsTable(name)


CASES = (
    Case("multi_full_join, 4 inputs", _operator),
    Case("multi_full_join, 4 inputs, long", _long_operator, unstable=False, long=True),
    Case("multi_full_join, a hot key in one of 3", _split_operator, fires="(skew: "),
    Case("the same with an aggregated input", _aggregated, fires="(skew: "),
    Case("Spark's full join, hot on the left", _spark_join("full", 0), fires="(skew: "),
    Case("Spark's left join, hot on the right", _spark_join("left", 1), fires="(skew: "),
    Case(
        "Spark's anti join, hot on the right",
        # Of the right side there are only keys, and equal ones take hardly any bytes.
        _spark_join("left_anti", 1, rows=400_000),
        unstable=False,
        fires="(skew: ",
    ),
    Case("Spark's inner join", _two_sides("inner"), fires="BuildProbeJoin"),
    Case("Spark's inner join, hot on the left", _two_sides("inner", hot=0), fires="BuildProbeJoin"),
    Case(
        "Spark's left join with a condition, hot on the right",
        _two_sides("left", "v0 % 7 < v1 % 9", hot=1),
        fires="BuildProbeJoin",
    ),
    Case(
        "Spark's semi join with a condition, hot on the left",
        _two_sides("left_semi", "v0 % 7 < v1 % 9", hot=0),
        fires="BuildProbeJoin",
    ),
    Case("Spark's existence join, hot on the left", _existence, fires="BuildProbeJoin"),
    Case("three joins on one key", _one_stage, fires="BuildProbeJoin"),
    Case(
        "range join within a key, hot on the left",
        _two_sides("left", "v0 >= v1 - 500 AND v0 < v1", hot=0),
        fires="searched by range",
    ),
    Case("skew_join, adaptive, full", _technique(skewext.Adaptive(), "full"), fires="(skew: "),
    Case("skew_join, auto, left", _technique(skewext.Auto(), "left"), fires=""),
    Case(
        "skew_join, salted, full",
        _technique(skewext.Salted(6, hot_keys=[HOT]), "full"),
        fires="SaltKeys",
    ),
    Case(
        "skew_join, broadcast, left",
        _technique(skewext.Broadcast(), "left"),
        fires="BroadcastHashJoin",
    ),
    Case(
        "skew_join, broadcast_map, full",
        _technique(skewext.BroadcastMap("right"), "full"),
        unstable=False,
        fires="MarkedBroadcastJoin",
    ),
    Case(
        "skew_join, iterative_broadcast, full",
        _technique(skewext.IterativeBroadcast("right", chunks=3), "full"),
        unstable=False,
        fires="BroadcastHashJoin",
    ),
    Case("write_bucketed", _written, stages=(MAP, JOIN), fires="", writes=True),
    Case(
        "multi_full_join of buckets",
        _bucketed,
        unstable=False,
        # Nothing is shuffled for the join.
        stages=(MAP,),
        prepare=_make_buckets,
    ),
    Case(
        "multi_full_join of files, a hot key in one of 3",
        _of_files,
        unstable=False,
        fires="by column",
        prepare=_make_files,
    ),
    *(
        Case(
            name,
            query,
            unstable=False,
            stages=(MAP, JOIN, MARKING, MARKED),
            fires="tasks that marked keys",
        )
        for name, query in (
            ("multi_full_join, keys of one of 3 marked", _marked_operator),
            ("Spark's full join, keys of the left marked", _marked_full),
            ("Spark's anti join, keys of the right marked", _marked_anti),
        )
    ),
)
