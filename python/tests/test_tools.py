"""Tools on top of Spark give the same rows with the extension on and off, with splits forced.

`make test-tools` installs them in an environment of their own, and runs this file.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from stock import setting

if not os.environ.get("SKEWEXT_TEST_TOOLS"):
    pytest.skip("make test-tools has the tools", allow_module_level=True)

#: Each equi-join of two inputs becomes ours, and each partition with a hot key is split.
_FORCED = {
    "spark.sql.autoBroadcastJoinThreshold": -1,
    "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": 1000,
    "spark.sql.adaptive.skewJoin.skewedPartitionFactor": 2,
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": 500,
}
_OFF = {"spark.skewext.enabled": "false"}
#: Of our operators, and of Spark's joins that are split.
_MARKS = ("MultiFullJoin", "(skew: ")
_JOINED = """
    SELECT coalesce(o.k, r.k, v.k) AS k, amount, reason, page
    FROM orders o FULL JOIN returns r ON o.k = r.k FULL JOIN visits v ON coalesce(o.k, r.k) = v.k"""


@pytest.fixture(scope="module", autouse=True)
def _tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Three tables, of which one has half of its rows in one key."""
    folder = tmp_path_factory.mktemp("tables")
    random_ = random.Random(43)
    for name, column, size, hot in [
        ("orders", "amount int", 900, 0.5),
        ("returns", "reason int", 60, 0.03),
        ("visits", "page int", 60, 0.03),
    ]:
        rows = [
            (3 if random_.random() < hot else random_.randrange(60), random_.randrange(10**9))
            for _ in range(size)
        ]
        path = str(folder / name)
        spark.createDataFrame(rows, f"k int, {column}").repartition(4).write.parquet(path)
        spark.read.parquet(path).createOrReplaceTempView(name)
    yield
    for name in ("orders", "returns", "visits"):
        spark.catalog.dropTempView(name)


def datacompy(spark: SparkSession, folder: Path) -> list[Any]:
    from datacompy.spark import SparkSQLCompare

    # A key of several rows is numbered, so that rows are compared one by one.
    amounts = spark.sql("SELECT k, amount AS n FROM orders")
    others = spark.sql("SELECT k, if(amount % 3 = 0, 0, amount) AS n FROM orders WHERE k < 50")
    compared = SparkSQLCompare(spark, amounts, others, join_columns=["k"])
    mismatches = [row.asDict().items() for row in compared.all_mismatch().collect()]
    return [*map(sorted, mismatches), compared.count_matching_rows(), compared.report(0)]


def splink(spark: SparkSession, folder: Path) -> list[Any]:
    import splink.comparison_library as cl
    from splink import Linker, SettingsCreator, SparkAPI, block_on

    api = SparkAPI(spark_session=spark, break_lineage_method="persist")
    rows = spark.sql("SELECT amount AS unique_id, k, amount % 5 AS part FROM orders")
    settings = SettingsCreator(
        link_type="dedupe_only",
        comparisons=[cl.ExactMatch("part"), cl.ExactMatch("k")],
        blocking_rules_to_generate_predictions=[block_on("k")],
    )
    linker = Linker(api.register(rows), settings)
    pairs = linker.inference.predict().as_pandas_dataframe()
    return list(pairs[["unique_id_l", "unique_id_r", "match_probability"]].itertuples(index=False))


def ibis(spark: SparkSession, folder: Path) -> list[Any]:
    import ibis

    connection = ibis.pyspark.connect(spark)
    orders, returns, visits = map(connection.table, ("orders", "returns", "visits"))
    key = ibis.coalesce(ibis._.k, ibis._.k_right)
    both = orders.outer_join(returns, "k").mutate(k=key).drop("k_right")
    return list(both.outer_join(visits, "k").to_pyarrow().to_pylist())


def dbt(spark: SparkSession, folder: Path) -> list[Any]:
    from dbt.cli.main import dbtRunner

    (folder / "models").mkdir(parents=True)
    (folder / "dbt_project.yml").write_text(
        "{name: shop, version: '1.0', profile: shop, models: {+materialized: table}}"
    )
    (folder / "profiles.yml").write_text(
        "{shop: {target: dev, outputs: {dev: "
        "{type: spark, method: session, schema: shop, host: NA, threads: 1}}}}"
    )
    model = "{{ config(file_format='parquet') }}"
    (folder / "models" / "profile.sql").write_text(model + _JOINED)
    where = ["--project-dir", str(folder), "--profiles-dir", str(folder)]
    done = dbtRunner().invoke(["run", "--no-send-anonymous-usage-stats", *where])
    assert done.success, done.exception
    rows = spark.table("shop.profile").collect()
    spark.sql("DROP TABLE shop.profile")
    return rows


def sqlframe(spark: SparkSession, folder: Path) -> list[Any]:
    from sqlframe.spark import SparkSession as SqlFrame

    frames = SqlFrame(conn=spark)
    orders, returns, visits = (frames.read.table(each) for each in ("orders", "returns", "visits"))
    return [tuple(r) for r in orders.join(returns, "k", "full").join(visits, "k", "full").collect()]


def great_expectations(spark: SparkSession, folder: Path) -> list[Any]:
    import great_expectations as gx

    context = gx.get_context(mode="ephemeral")
    asset = context.data_sources.add_spark("shop").add_dataframe_asset("joined")
    definition = asset.add_batch_definition_whole_dataframe("all")
    batch = definition.get_batch({"dataframe": joined(spark)})
    expectations = [
        gx.expectations.ExpectColumnValuesToNotBeNull(column="amount"),
        gx.expectations.ExpectColumnValuesToBeBetween(column="page", max_value=10**8),
        gx.expectations.ExpectTableRowCountToEqual(value=7),
    ]
    results = [batch.validate(each) for each in expectations]
    # Of the rows it shows some, whichever come first.
    return [(r.success, {k: v for k, v in r.result.items() if "partial" not in k}) for r in results]


def pandera(spark: SparkSession, folder: Path) -> list[Any]:
    import pandera.pyspark as pa
    from pyspark.sql.types import IntegerType

    schema = pa.DataFrameSchema(
        {
            "k": pa.Column(IntegerType(), nullable=True),
            "page": pa.Column(IntegerType(), pa.Check.less_than(10**8), nullable=True),
            "amount": pa.Column(IntegerType()),
        }
    )
    checked = schema.validate(joined(spark))
    return [*checked.collect(), json.dumps(checked.pandera.errors)]


def chispa(spark: SparkSession, folder: Path) -> list[Any]:
    from chispa import assert_df_equality

    frame = joined(spark)
    rows = frame.collect()
    same = spark.createDataFrame(rows, frame.schema)
    assert_df_equality(joined(spark), same, ignore_row_order=True)
    with pytest.raises(Exception, match="reason"):
        assert_df_equality(frame, same.drop("reason"), ignore_row_order=True)
    return rows


def pandas_on_spark(spark: SparkSession, folder: Path) -> list[Any]:
    import pyspark.pandas as ps

    orders, returns, visits = map(ps.read_table, ("orders", "returns", "visits"))
    merged = orders.merge(returns, on="k", how="outer").merge(visits, on="k", how="outer")
    return list(merged.to_spark().collect())


def sparkmeasure(spark: SparkSession, folder: Path) -> list[Any]:
    from sparkmeasure import StageMetrics

    metrics = StageMetrics(spark)
    metrics.begin()
    rows = joined(spark).collect()
    metrics.end()
    assert metrics.aggregate_stagemetrics()["recordsRead"] >= 1020
    return rows


def joined(spark: SparkSession) -> DataFrame:
    return spark.sql(_JOINED)


@pytest.mark.parametrize(
    "tool",
    [
        datacompy,
        splink,
        ibis,
        dbt,
        sqlframe,
        great_expectations,
        pandera,
        chispa,
        pandas_on_spark,
        sparkmeasure,
    ],
    ids=lambda tool: tool.__name__,
)
def test_same_rows(
    spark: SparkSession, tmp_path: Path, tool: Callable[[SparkSession, Path], list[Any]]
) -> None:
    ours, with_us = run(spark, tmp_path / "on", tool, _FORCED)
    stock, without = run(spark, tmp_path / "off", tool, _OFF)
    assert ours == stock and ours
    # They join on unique keys. splink's inner join on the hot key is one that Spark splits itself.
    is_split = tool not in (datacompy, splink)
    assert marks(with_us) == list(_MARKS if is_split else _MARKS[:1])
    assert not marks(without)


def marks(plans: list[str]) -> list[str]:
    return [mark for mark in _MARKS if any(mark in plan for plan in plans)]


def run(
    spark: SparkSession,
    folder: Path,
    tool: Callable[[SparkSession, Path], list[Any]],
    conf: dict[str, object],
) -> tuple[list[str], list[str]]:
    """The rows as text, in order, and the final plans of all queries."""
    folder.mkdir()
    bus: Any = spark.sparkContext._jsc.sc().listenerBus()
    store: Any = spark._jsparkSession.sharedState().statusStore()
    before = store.executionsCount()
    with ExitStack() as settings:
        for key, value in conf.items():
            settings.enter_context(setting(spark, key, value))
        rows = sorted(map(str, tool(spark, folder)))
        spark.catalog.clearCache()
    bus.waitUntilEmpty()
    done = store.executionsList()
    plans = [done.apply(i).physicalPlanDescription() for i in range(before, done.size())]
    return rows, plans
