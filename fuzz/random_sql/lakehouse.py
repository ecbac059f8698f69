"""Delta and Iceberg in a session."""

from __future__ import annotations

from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

_LINE = ".".join(pyspark.__version__.split(".")[:2])

#: The jars of Scala's tests, as `sbt testJars` writes them down; `make test-scala` does.
JARS = Path(__file__).parents[3] / "target" / f"spark-{_LINE}" / "lakehouse-jars.txt"

_EXTENSIONS = {
    "delta": "io.delta.sql.DeltaSparkSessionExtension",
    "iceberg": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
}


def has(form: str) -> bool:
    """Whether this line of Spark has a release of the format of a source or sink."""
    return f"/{form.split(',')[0]}-spark" in JARS.read_text()


def lakehouse(builder: SparkSession.Builder, home: Path) -> SparkSession.Builder:
    """The builder of a session that has those that this line of Spark has."""
    extensions = [name for form, name in _EXTENSIONS.items() if has(form)]
    if has("delta"):
        catalog = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        builder = builder.config("spark.sql.catalog.spark_catalog", catalog)
    return (
        builder.config("spark.jars", JARS.read_text().strip())
        .config("spark.sql.extensions", ",".join(extensions))
        .config("spark.sql.catalog.ice", "org.apache.iceberg.spark.SparkCatalog")
        .config("spark.sql.catalog.ice.type", "hadoop")
        .config("spark.sql.catalog.ice.warehouse", f"{home}/ice")
        .config("spark.databricks.delta.snapshotPartitions", 1)
        .config("spark.sql.sources.v2.bucketing.enabled", True)
        .config("spark.sql.sources.v2.bucketing.pushPartValues.enabled", True)
        .config("spark.sql.iceberg.planning.preserve-data-grouping", True)
    )
