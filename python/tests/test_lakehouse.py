"""Delta, Iceberg and skewext in one session of PySpark."""

from __future__ import annotations

from pathlib import Path

import pyspark
import pytest
from amount import TEST_SLOW
from scripts import run_script

LINE = ".".join(pyspark.__version__.split(".")[:2])

#: The jars that sbt's tests have, as `sbt testJars` writes them down; `make test-scala` does.
JARS = Path(__file__).parents[2] / "target" / f"spark-{LINE}" / "lakehouse-jars.txt"

SCRIPT = """
import sys

import pyspark_skewext as skewext
from pyspark.sql import SparkSession, functions as F

jars, home, tests = sys.argv[1:]
sys.path.insert(0, tests)
from duck import duck_join
from multisets import assert_same_rows

builder = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", False)
    .config("spark.jars", jars)
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension,"
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .config("spark.sql.catalog.ice", "org.apache.iceberg.spark.SparkCatalog")
    .config("spark.sql.catalog.ice.type", "hadoop")
    .config("spark.sql.catalog.ice.warehouse", f"{home}/ice")
    .config("spark.sql.warehouse.dir", f"{home}/warehouse")
    .config("spark.databricks.delta.snapshotPartitions", 2)
    .config("spark.sql.shuffle.partitions", 2)
    .config("spark.sql.autoBroadcastJoinThreshold", -1)
    .config("spark.sql.sources.v2.bucketing.enabled", True)
    .config("spark.sql.sources.v2.bucketing.pushPartValues.enabled", True)
    .config("spark.sql.iceberg.planning.preserve-data-grouping", True)
    .config("spark.sql.session.timeZone", "UTC")
)
spark = skewext.configure(builder).getOrCreate()
assert skewext.is_enabled(spark)
for table, using in ("d", "delta"), ("ice.db.i", "iceberg"):
    spark.sql(f"CREATE TABLE {table} USING {using} AS SELECT id AS k, id AS v FROM range(6)")
    spark.sql(f"MERGE INTO {table} t USING (SELECT id AS k FROM range(4, 8)) s ON t.k = s.k"
        " WHEN MATCHED THEN UPDATE SET v = -1 WHEN NOT MATCHED THEN INSERT (k, v) VALUES (k, 0)"
        " WHEN NOT MATCHED BY SOURCE AND t.k = 0 THEN DELETE")
    rows = [tuple(row) for row in spark.table(table).orderBy("k").collect()]
    assert rows == [(1, 1), (2, 2), (3, 3), (4, -1), (5, -1), (6, 0), (7, 0)], rows
    try:
        skewext.write_bucketed(spark.range(3), table, by="id", buckets=2, mode="overwrite")
        raise AssertionError(f"{table} was written by bucket")
    except Exception as error:
        assert "Spark's own" in str(error), error
    assert spark.table(table).count() == 7

# Tables that are partitioned alike in their storage, against DuckDB.
day = F.date_add(F.lit("2024-02-27").cast("date"), (F.col("id") % 9).cast("int"))
transforms = {
    "identity": ("k", F.col("id") % 7, "BIGINT", True),
    "bucket": ("bucket(4, k)", F.col("id") % 11, "BIGINT", True),
    "days": ("days(k)", day, "DATE", True),
    # Of transforms Spark knows those of a column alone.
    "truncate": ("truncate(1, k)", (F.col("id") % 13).cast("string"), "VARCHAR", False),
}
for name, (by, key, kind, is_known) in transforms.items():
    tables = []
    for n, (first, last) in enumerate([(0, 9), (4, 30), (20, 22)]):
        rows = spark.range(first, last, 1, 2).select(
            F.when(F.col("id") % 5 != 4, key).alias("k"), F.col("id").alias(f"v{n}"))
        table = f"ice.db.{name}{n}"
        columns = ", ".join(f"{c} {t}" for c, t in rows.dtypes)
        spark.sql(f"CREATE TABLE {table} ({columns}) USING iceberg PARTITIONED BY ({by})")
        rows.writeTo(table).append()
        tables.append(spark.table(table))
    as_rows = [((kind, "BIGINT"), [tuple(row) for row in t.collect()]) for t in tables]
    # Two files of a partition are partitions of their own to Spark, if it is partially clustered.
    for clustered, roles in (
        (False, ["optional"] * 3), (True, ["optional"] * 3),
        (True, ["required", "optional", "excluded"]),
    ):
        partially = "spark.sql.sources.v2.bucketing.partiallyClusteredDistribution.enabled"
        spark.conf.set(partially, clustered)
        joined = skewext.multi_join(*tables, on="k", how=roles)
        assert_same_rows(joined, duck_join(as_rows, 1, roles))
        plan = joined._jdf.queryExecution().executedPlan().toString()
        assert ("Exchange" not in plan) == is_known, plan
        assert ("AlignPartitions" in plan) == is_known, plan

# Broadcast versions below a join by storage partitions, whose values Spark applies to all scans.
changes = spark.range(11).select(F.col("id").alias("k"), F.lit(0).alias("at"),
    F.date_add(F.lit("2024-02-27").cast("date"), F.col("id").cast("int")).alias("c"))
spark.sql("CREATE TABLE ice.db.changes (k BIGINT, at INT, c DATE) USING iceberg"
    " PARTITIONED BY (days(c))")
changes.writeTo("ice.db.changes").append()
spine, other = spark.table("ice.db.bucket0"), spark.table("ice.db.bucket1").hint("merge")
renamed = spine.select(F.col("k").alias("l"), F.col("v0").alias("w"))
versions = skewext.asof(F.broadcast(spark.table("ice.db.changes")), time="at")
for each in spine, spine.join(renamed.hint("merge"), F.col("k") == F.col("l")):
    found = skewext.asof_join(each, versions, on="k", time="v0").join(other, "k")
    assert "BroadcastAsOfJoin" in found._jdf.queryExecution().executedPlan().toString()
    assert found.count() == found.where("c IS NOT NULL").count() > 0, found.collect()
spark.stop()
"""


@pytest.mark.slow
@pytest.mark.skipif(not TEST_SLOW, reason="a session of its own, with much to load")
@pytest.mark.skipif(not JARS.exists(), reason="no jars of Delta and Iceberg: `sbt testJars`")
def test_delta_iceberg_and_skewext(tmp_path: Path) -> None:
    jars = JARS.read_text().strip()
    run_script(SCRIPT, tmp_path, jars, str(tmp_path), str(Path(__file__).parent))
