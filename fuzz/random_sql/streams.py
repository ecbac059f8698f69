"""A query in `foreachBatch`, where the rows of one table come as a micro-batch."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")


def in_batch(
    spark: SparkSession, home: Path, rows: str, name: str, run: Callable[[SparkSession], T]
) -> T:
    """What a function gives in the session of a micro-batch that has these rows."""
    path = home / "stream"
    shutil.rmtree(path, ignore_errors=True)
    inline = spark.sql(rows)
    inline.coalesce(1).write.parquet(str(path / "in"))
    found: list[T] = []

    def batch(frame: DataFrame, number: int) -> None:
        session = frame.sparkSession
        frame.createOrReplaceTempView(name)
        found.append(run(session))

    stream = spark.readStream.schema(inline.schema).parquet(str(path / "in"))
    writer = stream.writeStream.foreachBatch(batch).option(
        "checkpointLocation", str(path / "state")
    )
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    if not found:
        # An empty file makes no batch.
        return run(spark)
    return found[0]
