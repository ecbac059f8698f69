"""Joins by techniques against skew: all of them against Spark's own joins and DuckDB."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import fields
from typing import Any

import duckdb
import pytest
from multisets import assert_same_rows
from pyspark.errors import AnalysisException, PySparkTypeError, PySparkValueError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from stock import INTERPRETED, PLAIN, setting

import pyspark_skewext as skewext
from pyspark_skewext import (
    Adaptive,
    Auto,
    Broadcast,
    BroadcastMap,
    IterativeBroadcast,
    Salted,
    Technique,
    skew_join,
)
from pyspark_skewext._jvm import api_of, is_connect
from pyspark_skewext.techniques import BY_NAME

#: The techniques, with options that make them do something special in small tables.
TECHNIQUES: list[str | Technique] = [
    "auto",
    "none",
    Adaptive(threshold=500, slice_bytes=200, factor=1),
    "broadcast",
    BroadcastMap(side="left"),
    BroadcastMap(side="right"),
    IterativeBroadcast(chunks=2),
    "salted",
]

Rows = Sequence[tuple[Any, ...]]


class Case:
    """Two tables and the number of their key columns, which come first."""

    def __init__(self, keys: str, left: Rows, right: Rows) -> None:
        self.keys = [f"k{n}" for n in range(len(keys.split()))]
        self.types = keys.split()
        self.left, self.right = left, right

    def frames(self, spark: SparkSession) -> tuple[DataFrame, DataFrame]:
        return self._frame(spark, self.left, "a"), self._frame(spark, self.right, "b")

    def _frame(self, spark: SparkSession, rows: Rows, value: str) -> DataFrame:
        columns = [f"{name} {kind}" for name, kind in zip(self.keys, self.types)]
        frame = spark.createDataFrame(list(rows), ", ".join([*columns, f"{value} int"]))
        # Rows from Python may be others when they are made again, for all that Spark knows; those
        # that a client sends are in the plan.
        return frame if is_connect(frame) else frame.localCheckpoint()

    def by_duckdb(self, how: str) -> list[tuple[Any, ...]]:
        with duckdb.connect() as connection:
            for table, rows, value in (("l", self.left, "a"), ("r", self.right, "b")):
                columns = [f"{name} {kind}" for name, kind in zip(self.keys, self.types)]
                connection.execute(f"CREATE TABLE {table} ({', '.join(columns)}, {value} int)")
                if rows:
                    marks = ", ".join("?" * (len(self.keys) + 1))
                    connection.executemany(f"INSERT INTO {table} VALUES ({marks})", list(rows))
            on = " AND ".join(f"l.{key} = r.{key}" for key in self.keys)
            if how in ("left_semi", "left_anti"):
                no = "NOT " if how == "left_anti" else ""
                where = f"WHERE {no}EXISTS (SELECT 1 FROM r WHERE {on})"
                return connection.execute(f"SELECT * FROM l {where}").fetchall()
            keys = ", ".join(f"coalesce(l.{key}, r.{key})" for key in self.keys)
            return connection.execute(f"SELECT {keys}, a, b FROM l {how} JOIN r ON {on}").fetchall()


def _hot(rows: int, hot: int, others: int, start: int) -> Rows:
    """Rows of which `hot` have key 3, one in nine none, and the others one of `others` keys."""
    keys = [3 if n < hot else None if n % 9 == 0 else start + n % others for n in range(rows)]
    return [(key, n) for n, key in enumerate(keys)]


CASES = {
    "hot on both sides": Case("bigint", _hot(90, 40, 20, 0), _hot(40, 9, 15, 10)),
    "composite keys": Case(
        "int string",
        [(n % 4, None if n % 7 == 0 else "xyz"[n % 3], n) for n in range(24)]
        + [(2, "x", n) for n in range(30)]
        + [(None, "x", -1)],
        [(n % 5, None if n % 5 == 0 else "xyw"[n % 3], n) for n in range(16)]
        + [(2, "x", n) for n in range(5)]
        + [(None, "x", -1)],
    ),
    "no rows on the left": Case("int", [], [(1, 1), (None, 2)]),
    "no rows on the right": Case("int", [(1, 1), (None, 2), (1, 1)], []),
}

# Every kind of join once with much and once with little; the Scala suites have the others.
CELLS = [
    (name, how)
    for name, hows in {
        "composite keys": ["left", "full", "left_anti"],
        "hot on both sides": ["inner", "right", "left_semi"],
        "no rows on the left": ["full"],
        "no rows on the right": ["full"],
    }.items()
    for how in hows
]


@pytest.fixture(autouse=True, scope="module")
def _quick(spark: SparkSession) -> Iterator[None]:
    with ExitStack() as settings:
        for key, value in INTERPRETED.items():
            settings.enter_context(setting(spark, key, value))
        yield


def stock(spark: SparkSession, left: DataFrame, right: DataFrame, on: Any, how: str) -> list[Any]:
    with ExitStack() as settings:
        for key, value in PLAIN.items():
            settings.enter_context(setting(spark, key, value))
        return left.join(right, on, how).collect()


@pytest.mark.classic("asks the JVM")
def test_no_technique_is_left_out(spark: SparkSession) -> None:
    tested = {each if isinstance(each, str) else each.name for each in TECHNIQUES}
    assert sorted(tested) == sorted(map(str, api_of(spark).techniques()))


@pytest.mark.slow("composite keys-full")
@pytest.mark.parametrize(("name", "how"), CELLS)
def test_every_technique(spark: SparkSession, name: str, how: str) -> None:
    case = CASES[name]
    left, right = case.frames(spark)
    expected = stock(spark, left, right, case.keys, how)
    assert_same_rows(expected, case.by_duckdb(how))
    for technique in TECHNIQUES:
        joined = skew_join(left, right, case.keys, how, technique)
        try:
            assert joined.schema == left.join(right, case.keys, how).schema
            assert_same_rows(joined, expected)
        except AssertionError as error:
            raise AssertionError(f"{technique}: {error}") from error


@pytest.mark.parametrize(
    "how", ["outer", "fullouter", "full_outer", "leftouter", "left_outer", "rightouter"]
)
def test_other_names_of_joins(spark: SparkSession, how: str) -> None:
    case = CASES["no rows on the right"]
    left, right = case.frames(spark)
    joined = skew_join(left, right, case.keys[0], how.upper(), "broadcast_map")
    assert_same_rows(joined, stock(spark, left, right, case.keys, how))


def test_a_condition_instead_of_names(spark: SparkSession) -> None:
    left, right = CASES["hot on both sides"].frames(spark)
    right = right.withColumnRenamed("k0", "key")
    for how in ("inner", "full"):
        joined = skew_join(left, right, left.k0 == right.key, how, "broadcast_map")
        assert joined.columns == ["k0", "a", "key", "b"]
        assert_same_rows(joined, stock(spark, left, right, left.k0 == right.key, how))
        assert joined.where(left.a > 50).select(right.key).columns == ["key"]


@pytest.mark.slow("inner", "left", "right", "left_anti")
@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "left_semi", "left_anti"])
def test_python_functions_in_keys(spark: SparkSession, how: str) -> None:
    """Spark computes the function below the join, from columns that markers do not have."""
    stripped = F.udf(lambda s: None if s is None else s.strip(), "string")
    keys = "if(id % 9 = 0, NULL, if(id % 4 < 2, '7', string(id % 6)))"
    left = spark.range(0, 40, 1, 3).selectExpr(f"{keys} AS x", "id AS a")
    right = spark.range(0, 14, 1, 2).selectExpr(f"concat(' ', {keys}) AS y", "id AS b")
    on = stripped(left.x) == stripped(right.y)
    expected = stock(spark, left, right, on, how)
    techniques: list[Technique] = [
        *(Salted(hot_keys=["7", "5"], salts=8, side=side) for side in ("left", "right", "both")),
        BroadcastMap(side="left"),
        BroadcastMap(side="right"),
        IterativeBroadcast(chunks=2),
    ]
    for technique in techniques:
        try:
            assert_same_rows(skew_join(left, right, on, how, technique), expected)
        except AssertionError as error:
            raise AssertionError(f"{technique}: {error}") from error


def test_a_python_function_of_both_sides(spark: SparkSession) -> None:
    """Spark supports it in inner joins only, and several chunks are a chain of outer joins."""
    # Fails for rows without a match, which Spark does not give it.
    less = F.udf(lambda a, b: a + 1 < b * 2, "boolean")
    left = spark.range(0, 40, 1, 3).selectExpr("id % 9 AS x", "id AS a")
    right = spark.range(0, 14, 1, 2).selectExpr("id % 7 AS y", "id AS b")
    on = (left.x == right.y) & less(left.a, right.b) & (left.a != right.b)
    expected = stock(spark, left, right, on, "inner")
    assert 0 < len(expected) < left.join(right, left.x == right.y).count()
    chunked = [
        IterativeBroadcast(chunks=1, side="right"),
        IterativeBroadcast(chunks=2, side="left"),
        IterativeBroadcast(chunks=3, passes=2, side="right"),
    ]
    for technique in [*chunked, BroadcastMap(), Salted(hot_keys=[3])]:
        joined = skew_join(left, right, on, "inner", technique)
        assert_same_rows(joined, expected)
        assert f"skew_join by {technique.name}: " in str(skewext.explain(joined))


def test_explain_shows_the_chosen_technique(spark: SparkSession) -> None:
    left = spark.range(300).selectExpr("id % 50 AS k0", "id AS a")
    right = spark.range(9).selectExpr("id * 8 AS k0", "id AS b")
    joined = skew_join(left, right, "k0", "full")
    assert "skew_join by adaptive: both sides are shuffled" in str(skewext.explain(joined))
    with setting(spark, "spark.sql.autoBroadcastJoinThreshold", "10m"):
        joined = skew_join(left, right, "k0", "full")
        text = str(skewext.explain(joined))
    assert "skew_join by broadcast_map: the right side" in text


def test_hot_keys_of_a_report(spark: SparkSession) -> None:
    for name in ("hot on both sides", *(n for n, case in CASES.items() if len(case.keys) > 1)):
        case = CASES[name]
        left, right = case.frames(spark)
        report = skewext.skew_report(left, case.keys)
        salted = Salted(hot_keys=report.hot_keys)
        joined = skew_join(left, right, case.keys, "full", salted)
        assert_same_rows(joined, stock(spark, left, right, case.keys, "full"))
        if name == "hot on both sides":
            assert "hot key" in str(skewext.explain(joined))


@pytest.mark.parametrize(
    "key",
    [
        *("TIMESTAMP_NTZ'2024-02-29 01:02:03.4'", "TIMESTAMP'2024-02-29 01:02:03.4'"),
        *("TIMESTAMP_NTZ'0001-01-02'", "TIMESTAMP'0001-01-03'"),
        *("array(1, 2)", "struct(1 AS x, 'a' AS y)"),
    ],
)
def test_hot_keys_found_and_given(spark: SparkSession, key: str) -> None:
    """The session has another time zone than Python."""
    changed = {
        "spark.sql.session.timeZone": "Asia/Tokyo",
        "spark.sql.adaptive.coalescePartitions.enabled": "false",
    }
    with ExitStack() as stack:
        for name, value in changed.items():
            stack.enter_context(setting(spark, name, value))
        # Spark would not compare constants.
        left = spark.range(60).selectExpr(f"if(id < 0, NULL, {key}) AS k", "id AS a", "id < 0 AS j")
        right = spark.range(1).selectExpr(f"if(id < 0, NULL, {key}) AS k", "id AS b", "id < 0 AS j")
        given = left.select("k").first()
        assert given is not None
        cases: list[tuple[Any, Salted]] = [("k", Salted(16))]
        # lit() takes no structs, and has another calendar for times of old.
        if not isinstance(given.k, tuple) and (is_connect(left) or "TIMESTAMP'0001" not in key):
            cases += [
                ("k", Salted(16, hot_keys=[given.k])),
                (["j", "k"], Salted(16, hot_keys=[(False, given.k)])),
            ]
        for on, technique in cases:
            joined = skew_join(left, right, on, "full", technique)
            assert "1 hot key: each has its rows divided" in str(skewext.explain(joined))
            assert joined.select(F.spark_partition_id()).distinct().count() > 1
            assert joined.where("a IS NOT NULL AND b IS NOT NULL").count() == 60


def test_salted_compares_a_string_with_a_number_as_spark_does(spark: SparkSession) -> None:
    left = spark.range(9).selectExpr("id % 3 AS k", "id AS a")
    right = spark.range(4).selectExpr("if(id = 0, 'x', '0' || id) AS k", "id AS b")
    with setting(spark, "spark.sql.ansi.enabled", False):
        joined = skew_join(left, right, "k", "inner", "salted")
        assert_same_rows(joined, stock(spark, left, right, "k", "inner"))


def test_hints(spark: SparkSession) -> None:
    left, right = CASES["hot on both sides"].frames(spark)
    left.createOrReplaceTempView("l")
    right.createOrReplaceTempView("r")
    expected = stock(spark, left, right, ["k0"], "full")
    by_sql = spark.sql(
        "SELECT /*+ SKEWEXT_JOIN(r, broadcast_map) */ * FROM l FULL JOIN r USING (k0)"
    )
    by_hint = left.join(right.hint("skewext_join", "broadcast_map"), "k0", "full")
    for joined in (by_sql, by_hint):
        assert "skew_join by broadcast_map" in str(skewext.explain(joined))
        assert_same_rows(joined, expected)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"on": "nokey"}, AnalysisException, "left side has no column 'nokey'.*'a'; where key"),
        ({"on": ["k0", "a"]}, AnalysisException, "right side has no column 'a'.*'k0', 'b'"),
        ({"on": []}, PySparkValueError, "on must not be empty"),
        ({"on": 3}, PySparkTypeError, "on must be"),
        ({"right": None}, PySparkTypeError, "right side must be a DataFrame"),
        ({"left": ("x", "k")}, PySparkTypeError, "left side must be a DataFrame, not a tuple"),
        ({"how": "cross"}, PySparkValueError, "cross join"),
        ({"how": "right_anti"}, PySparkValueError, "swap the sides and take left_anti"),
        ({"how": "sideways"}, PySparkValueError, "inner.*not 'sideways'"),
        ({"how": 1}, PySparkTypeError, "how must be the name"),
        ({"technique": "magic"}, PySparkValueError, "'magic'.*broadcast_map"),
        ({"technique": None}, PySparkTypeError, "technique must be a name"),
        ({"sides": "left"}, TypeError, "unexpected keyword argument 'sides'"),
        ({"technique": Broadcast(side="top")}, AnalysisException, "one of left, right"),
        ({"technique": Adaptive(factor="x")}, AnalysisException, "at least 1"),
        ({"technique": Adaptive(factor=[])}, PySparkTypeError, "a string or a number"),
        ({"technique": Auto(hot_keys="x")}, PySparkTypeError, "hot_keys must be a list"),
    ],
)
def test_errors(
    spark: SparkSession, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    left, right = CASES["no rows on the right"].frames(spark)
    given = {"left": left, "right": right, "on": "k0", "how": "full", **arguments}
    with pytest.raises(error, match=message):
        skew_join(**given)
    assert skew_join(left, right, "k0", "full").count() == 3


@pytest.mark.slow
def test_on_accepts_all_forms_of_sparks_join(spark: SparkSession) -> None:
    left, right = CASES[next(n for n, case in CASES.items() if len(case.keys) > 1)].frames(spark)
    other = right.withColumnsRenamed({"k0": "l0", "k1": "l1"})
    named: list[Any] = ["k0", ["k0"], ("k0", "k1")]
    compared: list[Any] = [
        left.k0 == other.l0,
        [left.k0 == other.l0],
        [left.k0 == other.l0, left.k1 == other.l1],
        (left.k0 == other.l0, left.a < other.b),
    ]
    for how in ("inner", "left"):
        for on, side in [*((on, right) for on in named), *((on, other) for on in compared)]:
            as_spark = list(on) if isinstance(on, tuple) else on
            joined = skew_join(left, side, on, how, "broadcast_map")
            assert joined.columns == left.join(side, as_spark, how).columns
            assert_same_rows(joined, stock(spark, left, side, as_spark, how))
    mixed: Any = ["k0", left.k1 == other.l1]
    with pytest.raises(PySparkTypeError, match="on must not mix names and Columns"):
        skew_join(left, other, mixed)


@pytest.mark.classic("asks the JVM")
def test_techniques_and_options_are_those_of_the_jvm(spark: SparkSession) -> None:
    api = api_of(spark)
    assert list(BY_NAME) == [str(name) for name in api.techniques()]
    options = {field.name for kind in BY_NAME.values() for field in fields(kind)}
    assert options == {str(name) for name in api.techniqueOptions()}


def test_a_side_that_is_too_large_to_broadcast(spark: SparkSession) -> None:
    left, _ = CASES["hot on both sides"].frames(spark)
    limit = "spark.skewext.skewJoin.maxBroadcastBytes"
    ids = spark.range(100).toDF("k0")
    with setting(spark, limit, "10b"), pytest.raises(AnalysisException, match=limit):
        skew_join(left, ids, "k0", "full", BroadcastMap(side="right"))


@pytest.mark.classic("the server knows the size when it plans the join anew")
def test_a_side_that_proves_too_large_to_broadcast(spark: SparkSession) -> None:
    left, right = CASES["hot on both sides"].frames(spark)
    limit = "spark.skewext.skewJoin.maxBroadcastBytes"
    # Nobody knows how large rows from Python are until they have been collected.
    joined = skew_join(left, right, "k0", "full", "broadcast_map")
    with setting(spark, limit, "10b"), pytest.raises(AnalysisException, match=limit):
        joined.collect()
    assert skew_join(left, right, "k0", "full", "broadcast_map").count() > 0
