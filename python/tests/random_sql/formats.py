"""File formats that lose nothing: options, and text as lines of JSON."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

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
