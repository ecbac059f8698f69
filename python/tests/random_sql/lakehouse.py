"""Delta and Iceberg in a session."""

from __future__ import annotations

from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

_LINE = ".".join(pyspark.__version__.split(".")[:2])

#: The jars of Scala's tests, as `sbt testJars` writes them down; `make test-scala` does.
JARS = Path(__file__).parents[3] / "target" / f"spark-{_LINE}" / "lakehouse-jars.txt"


def lakehouse(builder: SparkSession.Builder, home: Path) -> SparkSession.Builder:
    """The builder of a session that has both."""
    return (
        builder.config("spark.jars", JARS.read_text().strip())
        .config(
            "spark.sql.extensions",
            "io.delta.sql.DeltaSparkSessionExtension,"
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        )
        .config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        )
        .config("spark.sql.catalog.ice", "org.apache.iceberg.spark.SparkCatalog")
        .config("spark.sql.catalog.ice.type", "hadoop")
        .config("spark.sql.catalog.ice.warehouse", f"{home}/ice")
        .config("spark.databricks.delta.snapshotPartitions", 1)
        .config("spark.sql.sources.v2.bucketing.enabled", True)
        .config("spark.sql.sources.v2.bucketing.pushPartValues.enabled", True)
        .config("spark.sql.iceberg.planning.preserve-data-grouping", True)
    )
