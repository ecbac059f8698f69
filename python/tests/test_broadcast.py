"""A large input and small ones: broadcast where all keys are the large one's."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from amount import TEST_ALL
from duck import duck_join
from multisets import multiset
from plans import exchange_count, node_names
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from stock import setting

from pyspark_skewext import explain, multi_join

ROLES = [
    ["required", "optional", "optional"],
    ["optional", "required", "excluded"],
    ["required", "required", "optional"],
    ["excluded", "optional", "required"],
]


@pytest.fixture(autouse=True)
def small_is_small(spark: SparkSession) -> Iterator[None]:
    # By Spark's estimate a table is as large as its files; a small one here has about 1,000 bytes.
    with setting(spark, "spark.sql.autoBroadcastJoinThreshold", "4000"):
        yield


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3 if TEST_ALL else 1))
@pytest.mark.parametrize("roles", ROLES, ids="-".join)
def test_answers_are_duckdbs(
    spark: SparkSession, tmp_path: Path, roles: list[str], seed: int
) -> None:
    source = random.Random(seed)
    large = roles.index("required")
    tables = []
    for n in range(len(roles)):
        rows = [
            (
                source.choice([None, *range(25)]),
                *(f"{n}.{row}.{c}" for c in range(1 if n == large else 2)),
            )
            for row in range(2000 if n == large else 20)
        ]
        types = ["int", *["string"] * (len(rows[0]) - 1)]
        tables.append((types, rows))
    inputs = []
    for n, (types, rows) in enumerate(tables):
        names = ["k", *(f"v{n}_{m}" for m in range(1, len(types)))]
        schema = ", ".join(f"{name} {kind}" for name, kind in zip(names, types))
        path = str(tmp_path / f"t{n}")
        spark.createDataFrame(rows, schema).coalesce(1).write.parquet(path)
        inputs.append(spark.read.parquet(path))
    joined = multi_join(*inputs, on="k", how=roles)
    expected = duck_join(
        [(["INTEGER", *["VARCHAR"] * (len(types) - 1)], rows) for types, rows in tables], 1, roles
    )
    assert multiset(joined.collect()) == multiset(expected)
    nodes = node_names(joined)
    assert nodes.count("BroadcastHashJoin") == len(roles) - 1
    assert "MultiFullJoin" not in nodes
    assert "Exchange" not in nodes


def test_off_it_is_one_join(spark: SparkSession) -> None:
    large = spark.range(5000).selectExpr("id % 30 AS k", "id AS v")
    small = spark.sql("SELECT * FROM VALUES (1L, 'a'), (99L, 'b') AS t(k, w)")
    joined = multi_join(large, small, on="k", how="left")
    with setting(spark, "spark.skewext.multiJoin.broadcast.enabled", "false"):
        one = multi_join(large, small, on="k", how="left")
        assert node_names(one).count("MultiFullJoin") == 1
        assert exchange_count(one) == 2
        rows = multiset(one.collect())
    assert node_names(joined).count("BroadcastHashJoin") == 1
    assert multiset(joined.collect()) == rows


def test_full_outer_is_never_broadcast(spark: SparkSession) -> None:
    large = spark.range(5000).selectExpr("id % 30 AS k", "id AS v")
    small = spark.sql("SELECT * FROM VALUES (1L, 'a'), (99L, 'b') AS t(k, w)")
    joined = multi_join(large, small, on="k", how="full")
    assert node_names(joined).count("MultiFullJoin") == 1


@pytest.mark.parametrize("roles", ROLES, ids="-".join)
def test_hinted_inputs_are_broadcast(spark: SparkSession, roles: list[str]) -> None:
    """`multi_join` shuffled all inputs, whatever their hints."""
    source = random.Random(3)
    required = roles.index("required")
    tables = [
        [(source.choice([None, *range(25)]), f"{n}.{row}") for row in range(60)]
        for n in range(len(roles))
    ]
    inputs = [
        df if n == required else sf.broadcast(df)
        for n, df in enumerate(
            spark.createDataFrame(rows, f"k int, v{n} string") for n, rows in enumerate(tables)
        )
    ]
    with setting(spark, "spark.sql.autoBroadcastJoinThreshold", "-1"):
        joined = multi_join(*inputs, on="k", how=roles)
        nodes = node_names(joined)
        assert nodes.count("BroadcastHashJoin") == len(roles) - 1
        assert "MultiFullJoin" not in nodes
        assert "Exchange" not in nodes
        expected = duck_join([(["INTEGER", "VARCHAR"], rows) for rows in tables], 1, roles)
        assert multiset(joined.collect()) == multiset(expected)


def test_explain_gives_the_reason_for_an_unused_hint(spark: SparkSession) -> None:
    one = spark.range(5).withColumnRenamed("id", "k")
    said = str(explain(multi_join(one, sf.broadcast(one), one.hint("merge"), on="k")))
    assert "hint: broadcast not used (no other input is required" in said
    assert "hint: merge not used (one operator joins all inputs" in said
    left = explain(multi_join(one, sf.broadcast(one), on="k", how="left"))
    assert left.joins[0].origin.status == "asked for"
    assert "broadcast hint" in left.joins[0].origin.text
