"""What the plans look like: how many shuffles, and what reaches the scans."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from multisets import assert_same_rows
from plans import exchange_count, node_names
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as sf
from stock import setting, stock_join

from pyspark_skewext import explain, multi_full_join, multi_join

JOIN = "MultiFullJoin"
STOCK_JOINS = {"SortMergeJoin", "ShuffledHashJoin", "BroadcastHashJoin"}


@pytest.fixture(scope="module")
def files(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Three tables of a composite key and three more columns, as parquet files."""
    home: Path = tmp_path_factory.mktemp("plans")
    paths = []
    for n in range(3):
        path = str(home / f"t{n}")
        table = spark.range(n * 20, n * 20 + 100).select(
            (sf.col("id") % 50).alias("a"),
            sf.col("id").cast("string").alias("b"),
            *((sf.col("id") * m).alias(f"v{n}_{m}") for m in range(3)),
        )
        table.write.parquet(path)
        paths.append(path)
    return paths


@pytest.fixture
def tables(spark: SparkSession, files: list[str]) -> list[DataFrame]:
    return [spark.read.parquet(path) for path in files]


@pytest.fixture(params=["true", "false"], ids=["adaptive", "static"])
def adaptive(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[None]:
    with setting(spark, "spark.sql.adaptive.enabled", request.param):
        yield


def plan_of(df: DataFrame) -> str:
    return str(df._jdf.queryExecution().executedPlan().toString())


@pytest.mark.usefixtures("adaptive")
@pytest.mark.parametrize("inputs", [2, 3, 7])
def test_one_shuffle_per_input(spark: SparkSession, files: list[str], inputs: int) -> None:
    # Different columns, so that no shuffle is the same as another and used twice.
    tables = [
        spark.read.parquet(files[n % 3]).select("a", (sf.col("b") + n).alias(f"x{n}"))
        for n in range(inputs)
    ]
    joined = multi_full_join(*tables, on="a")
    names = node_names(joined)
    assert names.count("Exchange") == inputs
    assert names.count(JOIN) == 1
    assert not STOCK_JOINS & set(names)


@pytest.mark.usefixtures("adaptive")
def test_aggregated_inputs_are_shuffled_once(tables: list[DataFrame]) -> None:
    # By the aggregation; its output is partitioned as the join needs it.
    inputs = [
        table.groupBy("a").agg(sf.sum(table.columns[3]).alias(f"s{n}"))
        for n, table in enumerate(tables)
    ]
    joined = multi_full_join(*inputs, on="a")
    assert exchange_count(joined) == 3
    names, rows = stock_join([(table, ["a"]) for table in inputs], ["a"])
    assert joined.columns == names
    assert_same_rows(joined, rows)


@pytest.mark.usefixtures("adaptive")
def test_join_of_joins_shuffles_every_input_once(tables: list[DataFrame]) -> None:
    one = multi_full_join(tables[0], tables[1].drop("b"), on="a")
    two = multi_full_join(one, tables[2].drop("b"), on="a")
    assert exchange_count(two) == 3


@pytest.mark.usefixtures("adaptive")
def test_grouping_by_the_keys_adds_none(tables: list[DataFrame]) -> None:
    joined = multi_full_join(*tables, on=["a", "b"])
    assert exchange_count(joined.groupBy("a", "b").count()) == 3
    assert exchange_count(joined.groupBy("b", "a").agg(sf.sum("v1_1"))) == 3
    assert exchange_count(joined.groupBy("a", "b", "v0_1").count()) == 3
    assert exchange_count(joined.select("a", "b").distinct()) == 3


@pytest.mark.usefixtures("adaptive")
def test_grouping_by_a_part_of_the_keys_needs_one(tables: list[DataFrame]) -> None:
    joined = multi_full_join(*tables, on=["a", "b"])
    grouped = joined.groupBy("a").agg(sf.count("*").alias("n"), sf.sum("v0_1").alias("s"))
    assert exchange_count(grouped) == 4
    names, rows = stock_join([(table, ["a", "b"]) for table in tables], ["a", "b"])
    expected: dict[int, list[int]] = {}
    for row in rows:
        entry = expected.setdefault(row[0], [0, 0])
        entry[0] += 1
        entry[1] += row[names.index("v0_1")] or 0
    assert {row.a: [row.n, row.s or 0] for row in grouped.collect()} == expected


@pytest.mark.usefixtures("adaptive")
def test_window_over_the_keys_adds_none(tables: list[DataFrame]) -> None:
    joined = multi_full_join(*(table.drop("b") for table in tables), on="a")
    ranked = joined.withColumn("n", sf.row_number().over(Window.partitionBy("a").orderBy("v0_0")))
    assert exchange_count(ranked) == 3
    assert ranked.where("n = 1").count() == joined.select("a").distinct().count()


@pytest.mark.usefixtures("adaptive")
@pytest.mark.parametrize("how", ["inner", "left", "full"])
def test_join_above_shuffles_only_the_other_side(
    spark: SparkSession, tables: list[DataFrame], how: str
) -> None:
    joined = multi_full_join(tables[0], tables[1].drop("b"), on="a")
    other = tables[2].select("a", sf.col("v2_1").alias("z"))
    above = joined.join(other, "a", how)
    names = node_names(above)
    assert names.count("Exchange") == 3
    rows = above.collect()
    with setting(spark, "spark.skewext.enabled", "false"):
        assert_same_rows(rows, above.select("*").collect())


@pytest.mark.usefixtures("adaptive")
def test_repartition_above_adds_none(tables: list[DataFrame]) -> None:
    joined = multi_full_join(*tables, on=["a", "b"])
    partitioned = joined.repartition(3, "a", "b")
    assert exchange_count(partitioned) == 3
    # Every key is in one partition, as the user asked.
    places = partitioned.select("a", "b", sf.spark_partition_id().alias("p")).distinct()
    assert places.count() == places.select("a", "b").distinct().count()


@pytest.mark.usefixtures("adaptive")
def test_repartition_otherwise_is_kept(tables: list[DataFrame]) -> None:
    joined = multi_full_join(*tables, on=["a", "b"])
    assert exchange_count(joined.repartition(5, "a", "b")) == 4
    assert exchange_count(joined.repartition(3, "v0_1")) == 4
    assert joined.repartition(5, "a", "b").rdd.getNumPartitions() == 5


@pytest.fixture(scope="module")
def bucketed(spark: SparkSession, files: list[str]) -> Iterator[list[str]]:
    names = []
    for n, path in enumerate(files):
        table = spark.read.parquet(path).withColumnRenamed("b", f"b{n}").coalesce(1)
        table.write.bucketBy(4, "a").sortBy("a").saveAsTable(f"bucketed{n}")
        names.append(f"bucketed{n}")
    yield names
    for name in names:
        spark.sql(f"drop table {name}")


@pytest.mark.slow("adaptive")
@pytest.mark.usefixtures("adaptive")
def test_bucketed_tables_need_no_shuffle(spark: SparkSession, bucketed: list[str]) -> None:
    tables = [spark.table(name) for name in bucketed]
    joined = multi_full_join(*tables, on="a")
    assert exchange_count(joined) == 0
    names, rows = stock_join([(table, ["a"]) for table in tables], ["a"])
    assert joined.columns == names
    assert_same_rows(joined, rows)
    assert exchange_count(joined.groupBy("a").count()) == 0


@pytest.mark.usefixtures("adaptive")
def test_bucketed_and_other_tables(
    spark: SparkSession, bucketed: list[str], tables: list[DataFrame]
) -> None:
    inputs = [spark.table(bucketed[0]), spark.table(bucketed[1]), tables[2]]
    joined = multi_full_join(*inputs, on="a")
    assert exchange_count(joined) <= 3
    names, rows = stock_join([(table, ["a"]) for table in inputs], ["a"])
    assert joined.columns == names
    assert_same_rows(joined, rows)


@pytest.mark.usefixtures("adaptive")
def test_cached_partitioned_inputs_need_no_shuffle(
    spark: SparkSession, tables: list[DataFrame]
) -> None:
    cached = [table.repartition(4, "a", "b").cache() for table in tables]
    try:
        for table in cached:
            table.count()
        joined = multi_full_join(*cached, on=["a", "b"])
        assert exchange_count(joined) == 0
        _, rows = stock_join([(table, ["a", "b"]) for table in tables], ["a", "b"])
        assert_same_rows(joined, rows)
    finally:
        for table in cached:
            table.unpersist()


@pytest.mark.usefixtures("adaptive")
def test_switched_off_it_is_sparks_chain(spark: SparkSession, tables: list[DataFrame]) -> None:
    joined = multi_full_join(*tables, on=["a", "b"], indicator="i")
    on = joined.collect()
    with setting(spark, "spark.skewext.enabled", "false"):
        off = multi_full_join(*tables, on=["a", "b"], indicator="i")
        names = node_names(off)
        assert JOIN not in names
        assert sum(name in STOCK_JOINS for name in names) == 2
        assert off.columns == joined.columns
        assert_same_rows(off, on)
        # A DataFrame made before is planned by the setting at that time of planning.
        assert JOIN not in node_names(joined.select("*"))
    assert JOIN in node_names(joined.select("*"))


@pytest.mark.parametrize(
    "roles", [["required"] * 3, ["required", "optional", "excluded"], ["optional"] * 3]
)
def test_switched_off_roles_mean_the_same(
    spark: SparkSession, tables: list[DataFrame], roles: list[str]
) -> None:
    on = multi_join(*tables, on="a", how=roles).collect()
    with setting(spark, "spark.skewext.enabled", "false"):
        assert_same_rows(multi_join(*tables, on="a", how=roles), on)


def read_schemas(df: DataFrame) -> list[set[str]]:
    found = re.findall(r"ReadSchema: struct<([^>]*)>", plan_of(df))
    return [{field.split(":")[0] for field in each.split(",") if field} for each in found]


def test_only_needed_columns_are_read(tables: list[DataFrame]) -> None:
    joined = multi_full_join(*tables, on="a").select("a", "v0_1", "v2_2")
    assert read_schemas(joined) == [{"a", "v0_1"}, {"a"}, {"a", "v2_2"}]
    assert joined.count() == multi_full_join(*tables, on="a").count()


def test_excluded_inputs_read_keys_only(tables: list[DataFrame]) -> None:
    joined = multi_join(*tables, on="a", how=["required", "optional", "excluded"])
    assert read_schemas(joined)[2] == {"a"}


def test_filter_on_a_key_reaches_every_scan(spark: SparkSession, tables: list[DataFrame]) -> None:
    joined = multi_full_join(*tables, on=["a", "b"]).where("a = 7")
    pushed = re.findall(r"PushedFilters: \[([^\]]*)\]", plan_of(joined))
    assert len(pushed) == 3
    assert all("EqualTo(a,7)" in each for each in pushed)
    _, rows = stock_join([(table, ["a", "b"]) for table in tables], ["a", "b"])
    assert_same_rows(joined, [row for row in rows if row[0] == 7])


def test_filter_on_other_columns(tables: list[DataFrame]) -> None:
    _, rows = stock_join([(table, ["a", "b"]) for table in tables], ["a", "b"])
    joined = multi_full_join(*tables, on=["a", "b"])
    assert_same_rows(joined.where("v1_1 > 30"), [r for r in rows if r[6] and r[6] > 30])
    assert_same_rows(joined.where("v1_1 is null"), [r for r in rows if r[6] is None])


def test_limit_and_order_above(tables: list[DataFrame]) -> None:
    joined = multi_full_join(*tables, on=["a", "b"])
    ordered = joined.orderBy("b", "a").limit(5).collect()
    _, rows = stock_join([(table, ["a", "b"]) for table in tables], ["a", "b"])
    assert [row[:2] for row in ordered] == sorted(
        (row[:2] for row in rows), key=lambda key: (key[1], key[0])
    )[:5]


def test_same_input_twice_is_shuffled_once(spark: SparkSession, tables: list[DataFrame]) -> None:
    with setting(spark, "spark.sql.adaptive.enabled", "false"):
        joined = multi_full_join(tables[0], tables[0], on="a", suffixes=["_l", "_r"])
        names = node_names(joined)
        assert names.count("Exchange") == 1
        assert names.count("ReusedExchange") == 1


#: What makes every partition of more than a few rows a skewed one, in a stage of two tasks.
ALL_SKEWED = {
    "spark.sql.shuffle.partitions": 2,
    "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": 1000,
    "spark.sql.adaptive.skewJoin.skewedPartitionFactor": 1,
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": 500,
}


@pytest.fixture
def all_skewed(spark: SparkSession) -> Iterator[None]:
    with ExitStack() as settings:
        for key, value in ALL_SKEWED.items():
            settings.enter_context(setting(spark, key, value))
        yield


@pytest.mark.usefixtures("all_skewed")
@pytest.mark.parametrize("inputs", [2, 3])
@pytest.mark.parametrize("method", ["mapInPandas", "mapInArrow"])
def test_a_join_below_a_barrier_stage_is_left_whole(
    spark: SparkSession, inputs: int, method: str
) -> None:
    pytest.importorskip("pandas", reason="PySpark 3.5 does not need it for anything else")

    def table(n: int, rows: int, hot: int) -> DataFrame:
        key = sf.when(sf.col("id") % 4 < hot, 3).otherwise(sf.col("id") % 40)
        text = sf.md5((sf.col("id") + n).cast("string"))
        return spark.range(0, rows, 1, 4).select(key.alias("k"), text.alias(f"s{n}"))

    def mapped(barrier: bool, *, shuffled: bool = False) -> DataFrame:
        tables = [table(0, 800, 2), *(table(n, 60, 0) for n in range(1, inputs))]
        join = multi_full_join(*tables, on="k")
        if inputs == 2:
            join = tables[0].join(tables[1].hint("merge"), "k", "full")
        below = join.repartition(2) if shuffled else join
        return getattr(below, method)(lambda frames: frames, below.schema, barrier=barrier)

    # There is room for two tasks at a time.
    whole = mapped(barrier=True)
    rows = whole.collect()
    with setting(spark, "spark.skewext.enabled", "false"):
        assert_same_rows(rows, mapped(barrier=True))
    (skew,) = explain(whole).joins[0].skew
    assert skew.status == "whole"
    assert "barrier" in skew.text
    assert "Repartition" in skew.advice
    for split in (mapped(barrier=False), mapped(barrier=True, shuffled=True)):
        split.collect()
        assert [skew.status for skew in explain(split).joins[0].skew] == ["split"]


@pytest.mark.usefixtures("all_skewed")
def test_an_rdd_barrier_above_a_join_that_is_not_to_be_split(spark: SparkSession) -> None:
    """As docs/skew.md has it: no plan shows what is done with an RDD."""
    left = spark.range(0, 800, 1, 4).select((sf.col("id") % 2 * 3).alias("k"), "id")
    text = sf.md5(sf.col("id").cast("string"))
    right = spark.range(0, 60, 1, 4).select(sf.col("id").alias("k"), text.alias("s"))

    def joined() -> DataFrame:
        return left.join(right.hint("merge"), "k", "full")

    with setting(spark, "spark.skewext.skew.enabled", "false"):
        rows = joined().rdd.barrier().mapPartitions(lambda rows: rows).collect()
    split = joined()
    assert_same_rows(rows, split)
    assert [skew.status for skew in explain(split).joins[0].skew] == ["split"]
