"""Formats that lose nothing: weights, options of files, and text as lines of JSON."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

#: How often a format of files, in a layout, is dealt as a source and as a sink.
_FILES = {
    "parquet": (7, 3),
    "parquet, partitioned": (2, 2),
    "parquet, columns missing": (2, 0),
    "orc": (2, 2),
    "orc, partitioned": (1, 1),
    "csv": (2, 2),
    "csv, partitioned": (0, 1),
    "json": (1, 2),
    "json, partitioned": (0, 1),
    "text": (1, 1),
}
#: The same for formats that need the jars of Delta and of Iceberg.
_LAKE = {
    "delta": (6, 4),
    "delta, partitioned": (0, 3),
    "delta, deletion vectors": (6, 0),
    "iceberg": (6, 4),
    "iceberg, partitioned": (4, 3),
}
FILE_SOURCES, LAKE_SOURCES = (
    {name: weight for name, (weight, _) in formats.items() if weight} for formats in (_FILES, _LAKE)
)
FILE_SINKS, LAKE_SINKS = (
    {name: weight for name, (_, weight) in formats.items() if weight} for formats in (_FILES, _LAKE)
)

_TIMES = {
    "timestampFormat": "yyyy-MM-dd HH:mm:ss.SSSSSS",
    "timestampNTZFormat": "yyyy-MM-dd HH:mm:ss.SSSSSS",
}
#: For reading and writing. CSV has no other way to tell a null from an empty text.
OPTIONS = {
    "csv": {"nullValue": "\\N", **_TIMES},
    "json": {"ignoreNullFields": "false", **_TIMES},
}


def write_text(frame: DataFrame, path: str) -> None:
    """A line of text for each row."""
    line = sf.to_json(sf.struct(*frame.columns), OPTIONS["json"])
    frame.select(line.alias("value")).write.text(path)


def read_text(spark: SparkSession, path: str, schema: str) -> DataFrame:
    """What was written so."""
    line = sf.from_json("value", schema, OPTIONS["json"])
    return spark.read.text(path).select(line.alias("row")).select("row.*")
