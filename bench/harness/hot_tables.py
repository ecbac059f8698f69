"""Tables in which one key, or a few, have far more rows than the others. Their columns are narrow.

The first table has `rows` rows, in the order of their numbers. The others have a quarter as many,
with unique keys, except in the kinds `both` and `product`.

`hot`: every second row of the first table has the hot key; each cold key has some two rows. The
second table has half of the cold keys and one row of the hot key. Each further table has half of
the keys of the one before. `hotnulls`: 30 % of the first table's keys are null.

`zipf`: in the first table the n-th most frequent key has n^-1.5 as many rows as the first, which
has 38 %. The second table has every other of these keys, with the first among them.

`both`: each table has thousands of rows of one key, spread over the table. `product`: the same at
the end of each table, in wide rows, and `rows` rows before.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from harness.case import FILES, FULL_ROWS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

HOT = "HOTHOTHOTHOTHOT0"
"""The key that half of the rows have; no other key looks like it."""

PRODUCT = 3000
"""Rows of the hot key in each table of the kind "product", at full scale."""

BOTH = 5000
"""The same of the kind "both", whose first table has `2 * FULL_ROWS` rows then."""

ZIPF = 1.5
"""The exponent of the kind "zipf"."""

ZETA = 2.612375
"""The sum of n^-1.5 over all n."""


def table(spark: SparkSession, kind: str, rows: int, number: int) -> DataFrame:
    """One of the tables."""
    row = F.col("id")
    quarter = max(1, rows // 4)
    size = rows if number == 0 else quarter
    if kind == "product":
        size = rows + product_copies(rows)
        key = F.when(row >= rows, F.lit(HOT)).otherwise(_text(row + quarter * number))
    elif kind == "both":
        key = _both(row, size, rows, number)
    elif kind == "zipf":
        place = F.pmod(_zipf_place(), F.lit(quarter))
        key = _text(place if number == 0 else row * 2 + number)
    elif number > 0:
        key = _text(row + rows // 8 * number)
        if kind == "hot" and number == 1:
            key = F.when(row == 0, F.lit(HOT)).otherwise(key)
    elif kind == "hot":
        cold = _text(F.pmod(F.expr("id div 2"), F.lit(quarter)))
        key = F.when(row % 2 == 0, F.lit(HOT)).otherwise(cold)
    else:
        known = F.pmod(F.xxhash64("id", F.lit(7000)), F.lit(10)) >= 3
        key = F.when(known, _text(row % quarter))
    values = [
        F.xxhash64("id", F.lit(10 * number)).alias(f"t{number}_a"),
        F.pmod(F.xxhash64("id", F.lit(10 * number + 1)), F.lit(1000)).alias(f"t{number}_b"),
        F.concat(F.lit("v"), (row % 5000).cast("string")).alias(f"t{number}_s"),
    ]
    if kind == "product":
        # What a join of wide rows copies, for the hot key alone.
        digits = F.concat(*(F.hex(F.xxhash64("id", F.lit(j))) for j in range(30)))
        values[1:] = [F.when(row >= rows, digits).otherwise("x").alias(f"t{number}_p")]
    return spark.range(0, size, 1, FILES).select(key.alias("device_id"), *values)


def product_copies(rows: int) -> int:
    """Rows of the hot key on either side: their product is in proportion to the table's rows."""
    return max(2, round(PRODUCT * sqrt(rows / (FULL_ROWS / 10))))


def both_copies(rows: int) -> int:
    """The same, of the kind "both"."""
    return max(2, round(BOTH * sqrt(rows / (2 * FULL_ROWS))))


def _both(row: Column, size: int, rows: int, number: int) -> Column:
    """Rows at equal distances have the hot key, so that all files have equally many of them."""
    step = max(1, size // both_copies(rows))
    is_hot = (row % step == 0) & (row < step * both_copies(rows))
    return F.when(is_hot, F.lit(HOT)).otherwise(_text(row + (rows - size // 2) * number))


def _zipf_place() -> Column:
    """A key's place in the order of frequency, from 1 on.

    The sum of n^-1.5 from k on is nearly the integral from k - 0.5 on, but for k = 1. So a row is
    at a place of at least k with a probability of 2 (k - 0.5)^-0.5 / zeta, from k = 2 on.
    """
    # 53 bits are what a double holds.
    chance = (F.shiftrightunsigned(F.xxhash64("id", F.lit(15)), 11) + 0.5) / F.lit(float(2**53))
    beyond = F.floor(F.pow(F.lit(2 / ZETA) / chance, F.lit(1 / (ZIPF - 1))) + 0.5)
    return F.when(chance >= (ZETA - 1) / ZETA, F.lit(1)).otherwise(F.greatest(beyond, F.lit(2)))


def _text(number: Column) -> Column:
    return F.substring(F.md5(number.cast("string")), 1, 16)
