"""What stays after the demo: the joined table as parquet, a look at it, and the picture."""

from __future__ import annotations

import textwrap
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from demo import console
from demo.compare import Fingerprint, fingerprint
from demo.contest import Outcome, read_inputs
from demo.inputs import INDICATOR, INPUTS, KEY, Variant
from demo.picture import Bars, Combination, draw
from pyspark_skewext import multi_full_join


def write_table(spark: SparkSession, data: Path, variant: Variant, file: Path) -> DataFrame:
    """Join once more, with the indicator column, write the result and read it back."""
    joined = multi_full_join(*read_inputs(spark, data, variant), on=KEY, indicator=INDICATOR)
    joined.write.mode("overwrite").parquet(str(file))
    return spark.read.parquet(str(file))


def check_table(table: DataFrame, expected: Fingerprint) -> list[str]:
    """Compare the written rows with the known answer, and the indicator with the rows.

    Every input has a column that is never null, so the nulls of a row say which inputs had the
    key: an independent way to the same array.
    """
    problems = []
    if fingerprint(table.drop(INDICATOR)) != expected:
        problems.append("the written table differs from the joined rows")
    places = [
        sf.when(sf.col(source.always_set).isNotNull(), sf.lit(position))
        for position, source in enumerate(INPUTS)
    ]
    from_nulls = sf.filter(sf.array(*places), lambda place: place.isNotNull())
    wrong = table.where(~sf.col(INDICATOR).eqNullSafe(from_nulls)).count()
    if wrong:
        problems.append(f"column {INDICATOR} is wrong in {wrong:,} rows")
    return problems


def show_first_rows(table: DataFrame, rows: int = 5) -> None:
    """Print some customers and the first measure of some inputs, to fit a terminal."""
    shown = [KEY, INDICATOR]
    shown += [f"{source.prefix}_{next(iter(source.measures))}" for source in INPUTS[:4]]
    first = table.select(shown).orderBy(sf.col(KEY).asc_nulls_last()).limit(rows).collect()
    cells = [[str(row[KEY]), str(row[INDICATOR]), *row[2:]] for row in first]
    console.table(shown, cells)
    console.line(f"... and {len(table.columns) - len(shown)} more columns.")
    numbered = ", ".join(f"{number} {source.label}" for number, source in enumerate(INPUTS))
    console.line(f"{INDICATOR} lists the inputs that know the customer:")
    console.line(f"{numbered}.")


def draw_picture(table: DataFrame, outcomes: list[Outcome], settings: str, file: Path) -> None:
    """Count the combinations of inputs and draw them next to the times."""
    counted = (
        table.where(sf.col(KEY).isNotNull())
        .groupBy(INDICATOR)
        .agg(sf.countDistinct(KEY).alias("customers"))
        .collect()
    )
    combinations = [Combination(tuple(row[INDICATOR]), row["customers"]) for row in counted]
    bars = [
        Bars(outcome.variant.short, outcome.times_stock.median, outcome.times_ours.median)
        for outcome in outcomes
    ]
    runs = len(outcomes[0].times_ours.seconds)
    note = textwrap.fill(f"Runs: {runs}, the median is shown. {settings}", 52)
    draw(file, combinations, bars, note)
