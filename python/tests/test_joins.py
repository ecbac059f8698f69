"""Answers of the joins, against Spark's own."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest
from multisets import assert_same_rows
from plans import plan_of
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from stock import setting, stock_join, table_of

from pyspark_skewext import Role, multi_full_join, multi_join
from pyspark_skewext.roles import roles_of


@pytest.fixture(scope="module")
def t1(spark: SparkSession) -> DataFrame:
    rows = [(1, "a"), (2, "b"), (2, "bb"), (None, "n"), (5, None)]
    return table_of(spark, rows, "k int, a string")


@pytest.fixture(scope="module")
def t2(spark: SparkSession) -> DataFrame:
    return table_of(spark, [(2, 20), (3, 30), (3, 33), (None, 0)], "k int, b int")


@pytest.fixture(scope="module")
def t3(spark: SparkSession) -> DataFrame:
    rows = [(1, 1.0), (3, 3.0), (4, 4.0), (None, float("nan"))]
    return table_of(spark, rows, "k int, c double")


def check(
    joined: DataFrame,
    inputs: list[Any],
    on: list[str],
    roles: list[str] | None = None,
    suffixes: list[str | None] | None = None,
    indicator: str | None = None,
) -> None:
    keyed = [each if isinstance(each, tuple) else (each, on) for each in inputs]
    names, rows = stock_join(keyed, on, roles, suffixes, indicator)
    assert joined.columns == names
    assert_same_rows(joined, rows)


def test_full_join_of_two(t1: DataFrame, t2: DataFrame) -> None:
    check(multi_full_join(t1, t2, on="k"), [t1, t2], ["k"])


def test_full_join_of_three(t1: DataFrame, t2: DataFrame, t3: DataFrame) -> None:
    check(multi_full_join(t1, t2, t3, on="k"), [t1, t2, t3], ["k"])


def test_equals_a_chain_of_joins_on_coalesced_keys(spark: SparkSession) -> None:
    one = table_of(spark, [("key1", 1), ("key2", 2)], "k string, a int")
    two, three, four = (
        table_of(spark, [("key3", n)], f"k string, {name} int") for n, name in enumerate("bcd")
    )
    joined = multi_full_join(one, two, three, four, on="k")
    assert_same_rows(
        joined,
        [("key1", 1, None, None, None), ("key2", 2, None, None, None), ("key3", None, 0, 1, 2)],
    )


@pytest.mark.slow
def test_forty_inputs(spark: SparkSession) -> None:
    inputs = [
        spark.range(n, n + 3).select(sf.col("id").alias("k"), sf.lit(n).alias(f"v{n}"))
        for n in range(40)
    ]
    joined = multi_full_join(*inputs, on="k", indicator="sources")
    rows = {row.k: row for row in joined.collect()}
    assert sorted(rows) == list(range(42))
    for k, row in rows.items():
        assert row.sources == [n for n in range(40) if n <= k < n + 3]
        assert [row[f"v{n}"] for n in row.sources] == row.sources


@pytest.mark.slow
def test_composite_keys(spark: SparkSession) -> None:
    one = table_of(
        spark, [(1, "x", 1), (1, "y", 2), (None, "x", 3), (2, None, 4)], "a int, b string, u int"
    )
    two = table_of(
        spark,
        [(1, "x", 5), (1, "x", 6), (None, "x", 7), (2, None, 8), (3, "z", 9)],
        "a int, b string, w int",
    )
    check(multi_full_join(one, two, on=["a", "b"]), [one, two], ["a", "b"])
    check(multi_full_join(one, two, on=("a", "b")), [one, two], ["a", "b"])


@pytest.mark.slow
def test_keys_of_other_names(t1: DataFrame, t2: DataFrame, t3: DataFrame) -> None:
    other = t2.withColumnRenamed("k", "dev")
    last = t3.withColumnRenamed("k", "id")
    check(
        multi_full_join(t1, (other, "dev"), (last, ["id"]), on="k"),
        [t1, (other, ["dev"]), (last, ["id"])],
        ["k"],
    )
    check(
        multi_full_join((t1, "k"), (other, "dev"), on="device"),
        [(t1, ["k"]), (other, ["dev"])],
        ["device"],
    )


def test_one_column_as_two_keys(spark: SparkSession) -> None:
    one = table_of(spark, [(1, 1, "a"), (1, 2, "b"), (None, 3, "c")], "x int, y int, u string")
    two = table_of(spark, [(1, "d"), (2, "e"), (None, "f")], "z int, w string")
    check(
        multi_full_join(one, (two, ["z", "z"]), on=["x", "y"]),
        [(one, ["x", "y"]), (two, ["z", "z"])],
        ["x", "y"],
    )


def test_key_column_need_not_come_first(spark: SparkSession) -> None:
    one = table_of(spark, [("a", 1, True)], "u string, k int, w boolean")
    two = table_of(spark, [(2.0, 1)], "x double, k int")
    check(multi_full_join(one, two, on="k"), [one, two], ["k"])


@pytest.mark.parametrize(
    ("how", "roles"),
    [
        ("full", "optional optional optional"),
        ("outer", "optional optional optional"),
        ("full_outer", "optional optional optional"),
        ("LEFT", "required optional optional"),
        ("left_outer", "required optional optional"),
        ("inner", "required required required"),
        (["Required", Role.OPTIONAL, "EXCLUDED"], "required optional excluded"),
        ((Role.EXCLUDED, "Optional"), "excluded optional"),
    ],
)
def test_roles_of_how(how: Any, roles: str) -> None:
    expected = roles.split()
    assert [role.value for role in roles_of(how, len(expected))] == expected


@pytest.mark.parametrize(
    ("how", "roles"),
    [
        ("full", ["optional"] * 3),
        ("LEFT", ["required", "optional", "optional"]),
        ("inner", ["required"] * 3),
        (["Required", Role.OPTIONAL, "EXCLUDED"], ["required", "optional", "excluded"]),
        (["excluded", "required", "excluded"], ["excluded", "required", "excluded"]),
        (["required", "required", "excluded"], ["required", "required", "excluded"]),
    ],
)
def test_how(t1: DataFrame, t2: DataFrame, t3: DataFrame, how: Any, roles: list[str]) -> None:
    joined = multi_join(t1, t2, t3, on="k", how=how, indicator="i")
    check(joined, [t1, t2, t3], ["k"], roles, indicator="i")


@pytest.mark.parametrize("second", Role)
@pytest.mark.parametrize("first", Role)
def test_every_role_before_an_optional_input(
    t1: DataFrame, t2: DataFrame, t3: DataFrame, first: Role, second: Role
) -> None:
    roles = [first, second, Role.OPTIONAL]
    joined = multi_join(t1, t2, t3, on="k", how=roles, indicator="i")
    check(joined, [t1, t2, t3], ["k"], [role.value for role in roles], indicator="i")


@pytest.mark.parametrize("how", ["left", "inner"])
def test_named_joins_are_those_of_spark(
    spark: SparkSession, t1: DataFrame, t2: DataFrame, t3: DataFrame, how: str
) -> None:
    with setting(spark, "spark.skewext.enabled", "false"):
        expected = t1.join(t2, "k", how).join(t3, "k", how).collect()
    assert_same_rows(multi_join(t1, t2, t3, on="k", how=how), expected)


def test_indicator(t1: DataFrame, t2: DataFrame, t3: DataFrame) -> None:
    joined = multi_full_join(t1, t2, t3, on="k", indicator="sources")
    assert joined.columns[-1] == "sources"
    assert joined.schema["sources"].dataType.simpleString() == "array<int>"
    check(joined, [t1, t2, t3], ["k"], indicator="sources")


def test_suffixes_go_to_clashing_names_only(spark: SparkSession) -> None:
    one = spark.createDataFrame([(1, 10, 11)], "k int, v int, mine int")
    two = spark.createDataFrame([(1, 20, 21)], "k int, v int, yours int")
    joined = multi_full_join(one, two, on="k", suffixes=["_l", "_r"])
    assert joined.columns == ["k", "v_l", "mine", "v_r", "yours"]
    joined = multi_full_join(one, two, on="k", suffixes=(None, "_new"))
    assert joined.columns == ["k", "v", "mine", "v_new", "yours"]
    assert [tuple(row) for row in joined.collect()] == [(1, 10, 11, 20, 21)]


def test_suffix_for_a_column_named_like_an_output_key(spark: SparkSession) -> None:
    one = spark.createDataFrame([(1, 10)], "k int, v int")
    two = spark.createDataFrame([(1, 99)], "dev int, k int")
    joined = multi_full_join(one, (two, "dev"), on="k", suffixes=["_a", "_b"])
    assert joined.columns == ["k", "v", "k_b"]
    assert [tuple(row) for row in joined.collect()] == [(1, 10, 99)]


def test_names_may_repeat_without_suffixes(t1: DataFrame) -> None:
    joined = multi_full_join(t1, t1, on="k")
    assert joined.columns == ["k", "a", "a"]
    check(joined, [t1, t1], ["k"])


def test_same_dataframe_several_times(t1: DataFrame) -> None:
    joined = multi_full_join(t1, t1, t1, t1, on="k", suffixes=["_0", "_1", "_2", "_3"])
    check(joined, [t1] * 4, ["k"], suffixes=["_0", "_1", "_2", "_3"])


@pytest.mark.slow
def test_results_join_with_each_other_and_with_their_inputs(
    spark: SparkSession, t1: DataFrame, t2: DataFrame, t3: DataFrame
) -> None:
    one = multi_full_join(t1, t2, on="k")
    two = multi_full_join(t2, t3, on="k")
    check(
        multi_full_join(one, two, one, on="k", suffixes=["_x", "_y", "_z"]),
        [one, two, one],
        ["k"],
        suffixes=["_x", "_y", "_z"],
    )
    joined = one.join(t1, "k", "full").join(two.select("k", "c"), "k", "left")
    chain = t1.join(t2, "k", "full")
    with setting(spark, "spark.skewext.enabled", "false"):
        expected = (
            chain.join(t1, "k", "full")
            .join(t2.join(t3, "k", "full").select("k", "c"), "k", "left")
            .collect()
        )
    assert_same_rows(joined, expected)


@pytest.mark.slow
def test_cached_results(t1: DataFrame, t2: DataFrame, t3: DataFrame) -> None:
    joined = multi_full_join(t1, t2, t3, on="k")
    before = joined.collect()
    joined.cache()
    try:
        assert joined.count() == len(before)
        again = multi_full_join(t1, t2, t3, on="k")
        assert "InMemoryTableScan" in plan_of(again)
        assert_same_rows(again, before)
        assert_same_rows(joined.groupBy("k").count().select("k"), {(row.k,) for row in before})
        check(multi_full_join(joined, t1, on="k"), [joined, t1], ["k"])
    finally:
        joined.unpersist()


def test_cached_inputs(t1: DataFrame, t2: DataFrame) -> None:
    cached = t1.select("*").cache()
    try:
        check(multi_full_join(cached, t2, cached, on="k"), [cached, t2, cached], ["k"])
    finally:
        cached.unpersist()


def test_null_keys_match_nothing(spark: SparkSession) -> None:
    one = table_of(spark, [(None, 1), (None, 2)], "k int, a int")
    two = table_of(spark, [(None, 3)], "k int, b int")
    joined = multi_full_join(one, two, on="k", indicator="i")
    assert_same_rows(joined, [(None, 1, None, [0]), (None, 2, None, [0]), (None, None, 3, [1])])


@pytest.mark.slow("sizes1")
@pytest.mark.parametrize("sizes", [(0, 3), (3, 0), (0, 0)])
def test_empty_inputs(spark: SparkSession, sizes: tuple[int, int]) -> None:
    one, two = (
        spark.createDataFrame([(n, n) for n in range(size)], f"k int, {name} int")
        for size, name in zip(sizes, "ab")
    )
    check(multi_full_join(one, two, on="k"), [one, two], ["k"])
    check(multi_join(one, two, on="k", how="left"), [one, two], ["k"], ["required", "optional"])


def test_inputs_of_keys_only(spark: SparkSession) -> None:
    one, two = spark.range(3).toDF("k"), spark.range(2, 5).toDF("k")
    check(multi_full_join(one, two, on="k", indicator="i"), [one, two], ["k"], indicator="i")


@pytest.mark.parametrize(
    ("kinds", "values"),
    [
        (("int", "bigint"), [1, 2]),
        (("smallint", "tinyint"), [1, 2]),
        (("decimal(5,2)", "decimal(9,3)"), [Decimal("1.10"), Decimal("2.00")]),
        (("int", "double"), [1, 2]),
        (("boolean", "boolean"), [True, False]),
        (("binary", "binary"), [b"a", b"bc"]),
        (("date", "timestamp"), [datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)]),
        (("array<int>", "array<int>"), [[1], [1, None]]),
        (("struct<x:int,y:string>", "struct<x:int,y:string>"), [(1, "a"), (2, None)]),
    ],
)
def test_types_of_keys(spark: SparkSession, kinds: tuple[str, str], values: list[Any]) -> None:
    def table(kind: str, name: str, rows: list[Any]) -> DataFrame:
        # The value is cast where Python's type is not that of the column.
        source = "timestamp" if kind == "timestamp" else kind
        if source == "double":
            rows = [float(row) for row in rows]
        if source == "timestamp":
            rows = [datetime.datetime(row.year, row.month, row.day) for row in rows]
        return spark.createDataFrame([(row, 1) for row in [*rows, None]], f"k {kind}, {name} int")

    one = table(kinds[0], "a", values)
    two = table(kinds[1], "b", values[1:])
    joined = multi_full_join(one, two, one.withColumnRenamed("a", "c"), on="k")
    chain = one.join(two, "k", "full")
    assert joined.schema["k"].dataType == chain.schema["k"].dataType
    check(joined, [one, two, one.withColumnRenamed("a", "c")], ["k"])


def test_nan_and_zeros(spark: SparkSession) -> None:
    nan = float("nan")
    one = spark.createDataFrame([(nan, 1), (0.0, 2), (None, 3)], "k double, a int")
    two = spark.createDataFrame([(nan, 4), (-0.0, 5)], "k double, b int")
    joined = multi_full_join(one, two, on="k")
    assert_same_rows(joined, [(nan, 1, 4), (0.0, 2, 5), (None, 3, None)])


def test_case_of_names(spark: SparkSession) -> None:
    one = spark.createDataFrame([(1, "a")], "ID int, a string")
    two = spark.createDataFrame([(1, "b")], "id int, b string")
    joined = multi_full_join(one, two, on="Id")
    assert joined.columns == ["Id", "a", "b"]
    assert [tuple(row) for row in joined.collect()] == [(1, "a", "b")]
    with setting(spark, "spark.sql.caseSensitive", "true"):
        joined = multi_full_join(one, (two, "id"), on="ID")
        assert [tuple(row) for row in joined.collect()] == [(1, "a", "b")]


def test_unusual_column_names(spark: SparkSession) -> None:
    one = spark.createDataFrame([(1, "a")], "`the.key` int, `a b` string")
    two = spark.createDataFrame([(1, "b")], "`k``2` int, `x.y` string")
    joined = multi_full_join(one, (two, "k`2"), on="the.key")
    assert joined.columns == ["the.key", "a b", "x.y"]
    assert [tuple(row) for row in joined.collect()] == [(1, "a", "b")]


def test_nullability(t1: DataFrame, spark: SparkSession) -> None:
    keys = spark.range(3).select(sf.col("id").alias("k"), sf.lit(1).alias("one"))
    full = multi_full_join(keys, t1, on="k")
    assert all(field.nullable for field in full.schema.fields)
    left = multi_join(keys, t1, on="k", how="left")
    assert [field.nullable for field in left.schema.fields] == [False, False, True]


@pytest.mark.parametrize("adaptive", ["true", "false"])
@pytest.mark.parametrize("partitions", ["1", "3"])
def test_settings_of_spark(
    spark: SparkSession,
    t1: DataFrame,
    t2: DataFrame,
    t3: DataFrame,
    adaptive: str,
    partitions: str,
) -> None:
    with (
        setting(spark, "spark.sql.adaptive.enabled", adaptive),
        setting(spark, "spark.sql.shuffle.partitions", partitions),
    ):
        check(multi_full_join(t1, t2, t3, on="k"), [t1, t2, t3], ["k"])


def test_result_is_an_ordinary_dataframe(spark: SparkSession, t1: DataFrame, t2: DataFrame) -> None:
    joined = multi_full_join(t1, t2, on="k")
    assert type(joined) is type(joined.sparkSession.range(1))
    assert joined.sparkSession is spark
    joined.createOrReplaceTempView("joined")
    assert spark.sql("select count(*) from joined where k = 2").collect()[0][0] == 2
    assert joined.filter(joined.b > 10).select(sf.sum(joined.b)).collect()[0][0] == 103
    assert joined.orderBy(sf.desc("k")).first()[0] == 5
    spark.catalog.dropTempView("joined")
