"""The tables: Spark makes them once and keeps them in a directory outside of git.

Every table has a random half of the same `2 * rows` keys. So two tables share half of their keys,
and a key of one table is in each other one with a probability of one half. Rows are in random
order. Values are hashes of the key's number, so the same table comes from every run.

Tables with hot keys are narrower, see `hot_tables`. Those of `queries` are different again.
"""

from __future__ import annotations

import shutil
from hashlib import md5
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from harness import as_of, hot_tables, queries
from harness.case import BUCKETED, FILES, SKEWED

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

BUCKETS = 16
APPENDS = 4
"""Writes of a table of the kind "appends", and so files of each bucket."""

COPIES = 10
"""Rows of a key in the tables with duplicates."""

LOOKED_UP = md5(b"17").hexdigest()[:16]
"""A key of every kind of tables with string keys. It may be missing from a table."""


def keys_of(kind: str) -> list[str]:
    """Names of the key columns."""
    return ["device", "region", "day"] if kind == "threekeys" else ["device_id"]


def unique_keys(kind: str) -> bool:
    """Whether all keys of each table are unique and not null."""
    return kind not in ("duplicates", "nulls30", *SKEWED)


def table_path(cache: Path, kind: str, rows: int, table: int) -> Path:
    """The directory of a table."""
    return cache / "data" / f"{kind}-{rows}" / f"t{table}"


def missing(cache: Path, kind: str, rows: int, tables: int) -> list[int]:
    """Tables that do not exist yet."""
    return [
        table
        for table in range(tables)
        if not (table_path(cache, kind, rows, table) / "_SUCCESS").exists()
    ]


def generate(spark: SparkSession, cache: Path, kind: str, rows: int, table: int) -> None:
    """Make one table, under another name until it is complete."""
    path = table_path(cache, kind, rows, table)
    making = path.with_name(f"{path.name}.making")
    if kind in BUCKETED:
        _generate_bucketed(spark, cache, kind, rows, table, making)
    else:
        if kind in SKEWED:
            made = hot_tables.table(spark, kind, rows, table)
        elif kind == "star":
            made = queries.table(spark, rows, table)
        else:
            # A range partitioning by the key, or by a random number, into FILES partitions.
            order = F.col("device_id") if kind == "sorted" else F.rand(7 + table)
            of_kind = as_of.table if kind in as_of.ROWS_OF_A_KEY else _table
            made = of_kind(spark, kind, rows, table).repartitionByRange(FILES, order)
            made = made.sortWithinPartitions(order)
        made.write.mode("overwrite").parquet(str(making))
    shutil.rmtree(path, ignore_errors=True)
    making.rename(path)


def read(spark: SparkSession, cache: Path, kind: str, rows: int, tables: int) -> list[DataFrame]:
    """Open the tables; only those in buckets are in Spark's catalog."""
    paths = [table_path(cache, kind, rows, table) for table in range(tables)]
    frames = [spark.read.parquet(str(path)) for path in paths]
    if kind == "star":
        for name, frame in zip(queries.TABLES, frames):
            frame.createOrReplaceTempView(name)
    if kind not in BUCKETED:
        return frames
    order = "" if kind == "hotbuckets" else "SORTED BY (device_id) "
    for table, (path, frame) in enumerate(zip(paths, frames)):
        columns = ", ".join(f"`{f.name}` {f.dataType.simpleString()}" for f in frame.schema)
        spark.sql(f"DROP TABLE IF EXISTS bucketed_{table}")
        spark.sql(
            f"CREATE TABLE bucketed_{table} ({columns}) USING parquet "
            f"CLUSTERED BY (device_id) {order}INTO {BUCKETS} BUCKETS "
            f"LOCATION '{path.as_uri()}'"
        )
    return [spark.table(f"bucketed_{table}") for table in range(tables)]


def _generate_bucketed(
    spark: SparkSession, cache: Path, kind: str, rows: int, table: int, path: Path
) -> None:
    name = f"making_{table}"
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    if kind == "hotbuckets":
        # As Spark's writer does it: each task writes one file for each bucket.
        writes = [hot_tables.table(spark, "hot", rows, table)]
    else:
        if table in missing(cache, "string", rows, table + 1):
            generate(spark, cache, "string", rows, table)
        source = spark.read.parquet(str(table_path(cache, "string", rows, table)))
        n = APPENDS if kind == "appends" else 1
        part = F.pmod(F.xxhash64("device_id", F.lit(7)), F.lit(n))
        # With the partitioning of the buckets, one task writes a bucket, as one file.
        writes = [source.where(part == i).repartition(BUCKETS, "device_id") for i in range(n)]
    for number, frame in enumerate(writes):
        writer = frame.write.mode("append" if number else "overwrite").option("path", str(path))
        writer = writer.bucketBy(BUCKETS, "device_id")
        (writer if kind == "hotbuckets" else writer.sortBy("device_id")).saveAsTable(name)
    spark.sql(f"DROP TABLE {name}")


def _table(spark: SparkSession, kind: str, rows: int, table: int) -> DataFrame:
    repeated = kind == "duplicates" and table % 2 == 1
    ids = spark.range(0, 2 * rows, COPIES if repeated else 1, FILES).where(
        F.pmod(F.xxhash64("id", F.lit(100 + table)), F.lit(2)) == 0
    )
    copies = F.explode(F.sequence(F.lit(0), F.lit(COPIES - 1))) if repeated else F.lit(0)
    return ids.withColumn("copy", copies).select(*_keys(kind, table), *_values(kind, table))


def _keys(kind: str, table: int) -> list[Column]:
    text = F.substring(F.md5(F.col("id").cast("string")), 1, 16)
    if kind == "long":
        return [F.xxhash64("id").alias("device_id")]
    if kind == "threekeys":
        # Only the three together are unique: a device alone has hundreds of rows.
        return [
            F.substring(F.md5(F.pmod("id", F.lit(9973)).cast("string")), 1, 8).alias("device"),
            F.pmod(F.expr("id div 9973"), F.lit(50)).alias("region"),
            F.date_add(F.lit("2020-01-01"), F.expr("cast(id div (9973 * 50) as int)")).alias("day"),
        ]
    if kind == "nulls30":
        known = F.pmod(F.xxhash64("id", F.lit(7000 + table)), F.lit(10)) >= 3
        return [F.when(known, text).alias("device_id")]
    return [text.alias("device_id")]


def _values(kind: str, table: int) -> list[Column]:
    def number(seed: int, below: int) -> Column:
        return F.pmod(F.xxhash64("id", "copy", F.lit(table * 10 + seed)), F.lit(below))

    values = [number(j, 1000).alias(f"t{table}_m{j}") for j in range(3)]
    values.append(F.concat(F.lit("v"), number(3, 5000).cast("string")).alias(f"t{table}_s"))
    if kind == "payload200":
        # Hexadecimal digits of hashes: 200 bytes that do not compress away.
        text = F.concat_ws("-", "id", "copy", F.lit(table))
        digits = F.concat(F.sha2(text, 512), F.sha2(text, 256), F.md5(text))
        values.append(F.substring(digits, 1, 200).alias(f"t{table}_p"))
    return values
