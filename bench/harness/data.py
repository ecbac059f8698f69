"""The tables: made once by Spark, kept in a directory outside of git.

Every table has a random half of the same `2 * rows` keys, so that two tables share half of their
keys, and a key of one table is in each of the others with a probability of one half. Rows are in
random order. The values are hashes of the key's number: the same table comes out whenever and
wherever it is made.

Skewed tables are narrower, and of different sizes; see `hot_tables`. So are those of `queries`.
"""

from __future__ import annotations

import shutil
from hashlib import md5
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from harness import hot_tables, queries
from harness.case import BUCKETED, FILES, SKEWED

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

BUCKETS = 16
APPENDS = 4
"""Writes that a table of the kind "appends" is made of: files of each bucket."""

LOOKUP_BUCKETS = 64
"""Buckets of the table that a few rows are looked up in."""

COPIES = 10
"""Rows of a key in the tables with duplicates."""

LOOKED_UP = md5(b"17").hexdigest()[:16]
"""A key of every kind that has strings as keys, where a table has it."""


def keys_of(kind: str) -> list[str]:
    """Names of the key columns."""
    return ["device", "region", "day"] if kind == "threekeys" else ["device_id"]


def unique_keys(kind: str) -> bool:
    """Whether no table has a key twice, or a null one."""
    return kind not in ("duplicates", "nulls30", *SKEWED)


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
    if kind in BUCKETED:
        _generate_bucketed(spark, cache, kind, rows, table, making)
    elif kind in SKEWED:
        hot_tables.table(spark, kind, rows, table).write.mode("overwrite").parquet(str(making))
    elif kind == "lookup":
        _generate_visits(spark, rows, making)
    elif kind == "star":
        _star_table(spark, rows, table).write.mode("overwrite").parquet(str(making))
    else:
        # Range partitioning by the key, or by a random number: as many files as shuffle partitions.
        order = F.col("device_id") if kind == "sorted" else F.rand(7 + table)
        shuffled = _table(spark, kind, rows, table).orderBy(order)
        shuffled.write.mode("overwrite").parquet(str(making))
    shutil.rmtree(path, ignore_errors=True)
    making.rename(path)


def read(spark: SparkSession, cache: Path, kind: str, rows: int, tables: int) -> list[DataFrame]:
    """Open the tables; their values do not travel to Spark's catalog, except for buckets."""
    paths = [table_path(cache, kind, rows, table) for table in range(tables)]
    frames = [spark.read.parquet(str(path)) for path in paths]
    if kind == "star":
        for name, frame in zip(queries.TABLES, frames):
            frame.createOrReplaceTempView(name)
    if kind == "lookup":
        columns = ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in frames[0].schema)
        spark.sql("DROP TABLE IF EXISTS visits")
        spark.sql(
            f"CREATE TABLE visits ({columns}) USING parquet "
            f"CLUSTERED BY (shop, day) INTO {LOOKUP_BUCKETS} BUCKETS LOCATION '{paths[0].as_uri()}'"
        )
        return [spark.table("visits")]
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
    if kind == "hotbuckets":
        # As Spark's writer leaves it: each of the tasks has written a file of each bucket.
        source = hot_tables.table(spark, "hot", rows, table)
        writer = source.write.mode("overwrite").bucketBy(BUCKETS, "device_id")
        writer.option("path", str(path)).saveAsTable(f"making_{table}")
        spark.sql(f"DROP TABLE making_{table}")
        return
    if missing(cache, "string", rows, table + 1):
        for each in missing(cache, "string", rows, table + 1):
            generate(spark, cache, "string", rows, each)
    source = spark.read.parquet(str(table_path(cache, "string", rows, table)))
    name = f"making_{table}"
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    writes = APPENDS if kind == "appends" else 1
    for write in range(writes):
        # Partitioned as the buckets are, so that every bucket comes from one task, as one file.
        (
            source.where(F.pmod(F.xxhash64("device_id", F.lit(7)), F.lit(writes)) == write)
            .repartition(BUCKETS, "device_id")
            .write.mode("append" if write else "overwrite")
            .bucketBy(BUCKETS, "device_id")
            .sortBy("device_id")
            .option("path", str(path))
            .saveAsTable(name)
        )
    spark.sql(f"DROP TABLE {name}")


def _generate_visits(spark: SparkSession, rows: int, path: Path) -> None:
    """One file a bucket; a hundred shops on a thousand days."""
    visits = spark.range(0, rows, 1, FILES).withColumn("copy", F.lit(0))
    visits = visits.select(
        F.pmod(F.xxhash64("id", F.lit(1)), F.lit(100)).cast("int").alias("shop"),
        F.pmod(F.xxhash64("id", F.lit(2)), F.lit(1000)).cast("int").alias("day"),
        *_values("string", 0),
    )
    spark.sql("DROP TABLE IF EXISTS making_visits")
    (
        visits.repartition(LOOKUP_BUCKETS, "shop", "day")
        .write.mode("overwrite")
        .bucketBy(LOOKUP_BUCKETS, "shop", "day")
        .option("path", str(path))
        .saveAsTable("making_visits")
    )
    spark.sql("DROP TABLE making_visits")


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
    if kind == "ten":
        values += [number(j, 10**j).alias(f"t{table}_m{j}") for j in range(4, 10)]
    if kind == "payload200":
        # Hexadecimal digits of hashes: 200 bytes that do not compress away.
        text = F.concat_ws("-", "id", "copy", F.lit(table))
        digits = F.concat(F.sha2(text, 512), F.sha2(text, 256), F.md5(text))
        values.append(F.substring(digits, 1, 200).alias(f"t{table}_p"))
    return values


def _star_table(spark: SparkSession, rows: int, table: int) -> DataFrame:
    """One of `queries.TABLES`: the first has `rows` rows, two of them less, two are small."""

    def number(seed: int, below: int) -> Column:
        return F.pmod(F.xxhash64("id", F.lit(seed)), F.lit(max(1, below)))

    items, customers, shops = max(1, rows // 50), max(1, rows // 10), 20
    sold = [
        F.expr("id div 4").alias("ticket"),
        number(1, items).alias("item"),
        number(2, customers).alias("customer"),
    ]
    name = queries.TABLES[table]
    size = {"items": items, "customers": customers, "stores": shops}.get(name, rows)
    ids = spark.range(0, size, 1, FILES)
    if name == "sales":
        amounts = [number(3, shops).alias("store"), number(4, 730).alias("day")]
        return ids.select(*sold, *amounts, number(5, 10_000).alias("cents"))
    if name == "returns":
        return ids.where(number(6, 10) == 0).select(*sold, number(7, 1000).alias("refund"))
    own = F.col("id").alias(name[:-1])
    if name == "items":
        category = F.concat(F.lit("category "), (F.col("id") % 10).cast("string"))
        return ids.select(own, (F.col("id") % 50).alias("brand"), category.alias("category"))
    if name == "customers":
        born = (1940 + number(8, 65)).alias("birth_year")
        return ids.select(own, (F.col("id") % 25).alias("region"), born)
    return ids.select(own, F.concat(F.lit("city "), (F.col("id") % 7).cast("string")).alias("city"))
