"""The tables: made once by Spark, kept in a directory outside of git.

Every table has a random half of the same `2 * rows` keys, so that two tables share half of their
keys, and a key of one table is in each of the others with a probability of one half. Rows are in
random order. The values are hashes of the key's number: the same table comes out whenever and
wherever it is made.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

FILES = 8
"""Files of a table, however many cores made it."""

BUCKETS = 16
COPIES = 10
"""Rows of a key in the tables with duplicates."""

KINDS = ("string", "long", "duplicates", "payload200", "threekeys", "nulls30", "twin", "bucketed")


def keys_of(kind: str) -> list[str]:
    """Names of the key columns."""
    return ["device", "region", "day"] if kind == "threekeys" else ["device_id"]


def unique_keys(kind: str) -> bool:
    """Whether no table has a key twice, or a null one."""
    return kind not in ("duplicates", "nulls30")


def table_path(cache: Path, kind: str, rows: int, table: int) -> Path:
    """Where a table is, or will be."""
    return cache / "data" / f"{kind}-{rows}" / f"t{table}"


def missing(cache: Path, kind: str, rows: int, tables: int) -> list[int]:
    """Tables that are not there yet."""
    return [
        table
        for table in range(tables)
        if not (table_path(cache, kind, rows, table) / "_SUCCESS").exists()
    ]


def generate(spark: SparkSession, cache: Path, kind: str, rows: int, table: int) -> None:
    """Make one table, under another name until it is complete."""
    path = table_path(cache, kind, rows, table)
    making = path.with_name(f"{path.name}.making")
    if kind == "bucketed":
        _generate_bucketed(spark, cache, rows, table, making)
    else:
        # Range partitioning by a random number: as many files as shuffle partitions.
        shuffled = _table(spark, kind, rows, table).orderBy(F.rand(7 + table))
        shuffled.write.mode("overwrite").parquet(str(making))
    shutil.rmtree(path, ignore_errors=True)
    making.rename(path)


def read(spark: SparkSession, cache: Path, kind: str, rows: int, tables: int) -> list[DataFrame]:
    """Open the tables; their values do not travel to Spark's catalog, except for buckets."""
    paths = [table_path(cache, kind, rows, table) for table in range(tables)]
    frames = [spark.read.parquet(str(path)) for path in paths]
    if kind != "bucketed":
        return frames
    for table, (path, frame) in enumerate(zip(paths, frames)):
        columns = ", ".join(f"`{f.name}` {f.dataType.simpleString()}" for f in frame.schema)
        spark.sql(f"DROP TABLE IF EXISTS bucketed_{table}")
        spark.sql(
            f"CREATE TABLE bucketed_{table} ({columns}) USING parquet "
            f"CLUSTERED BY (device_id) SORTED BY (device_id) INTO {BUCKETS} BUCKETS "
            f"LOCATION '{path.as_uri()}'"
        )
    return [spark.table(f"bucketed_{table}") for table in range(tables)]


def _generate_bucketed(spark: SparkSession, cache: Path, rows: int, table: int, path: Path) -> None:
    if missing(cache, "string", rows, table + 1):
        for each in missing(cache, "string", rows, table + 1):
            generate(spark, cache, "string", rows, each)
    source = spark.read.parquet(str(table_path(cache, "string", rows, table)))
    name = f"making_{table}"
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    # Partitioned as the buckets are, so that every bucket comes from one task, as one file.
    (
        source.repartition(BUCKETS, "device_id")
        .write.mode("overwrite")
        .bucketBy(BUCKETS, "device_id")
        .sortBy("device_id")
        .option("path", str(path))
        .saveAsTable(name)
    )
    spark.sql(f"DROP TABLE {name}")


def _table(spark: SparkSession, kind: str, rows: int, table: int) -> DataFrame:
    repeated = kind == "duplicates" and table % 2 == 1
    step = COPIES if repeated else 1
    ids = spark.range(0, 2 * rows, step, FILES).where(
        F.pmod(F.xxhash64("id", F.lit(100 + table)), F.lit(2)) == 0
    )
    if repeated:
        ids = ids.withColumn("copy", F.explode(F.sequence(F.lit(0), F.lit(COPIES - 1))))
    else:
        ids = ids.withColumn("copy", F.lit(0))
    return ids.select(*_keys(kind, table), *_values(kind, table))


def _keys(kind: str, table: int) -> list[Column]:
    text = F.substring(F.md5(F.col("id").cast("string")), 1, 16)
    if kind == "long":
        return [F.xxhash64("id").alias("device_id")]
    if kind == "threekeys":
        # Only the three together are unique; the device alone has hundreds of rows.
        return [
            F.substring(F.md5(F.pmod("id", F.lit(9973)).cast("string")), 1, 8).alias("device"),
            F.pmod(F.expr("id div 9973"), F.lit(50)).alias("region"),
            F.date_add(F.lit("2020-01-01"), F.expr("cast(id div (9973 * 50) as int)")).alias("day"),
        ]
    if kind == "nulls30":
        known = F.pmod(F.xxhash64("id", F.lit(7000 + table)), F.lit(10)) >= 3
        return [F.when(known, text).alias("device_id")]
    keys = [text.alias("device_id")]
    return [*keys, text.alias("device_twin")] if kind == "twin" and table == 0 else keys


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
