"""The demo from beginning to end, in the order in which it is printed."""

from __future__ import annotations

import time
from pathlib import Path

from pyspark.sql import SparkSession

from demo import console
from demo.contest import Outcome, contest
from demo.data import cached_data, make_data
from demo.inputs import INDICATOR, VARIANTS, Variant
from demo.options import DemoError, Options
from demo.result import check_table, draw_picture, show_first_rows, write_table
from demo.session import demo_session
from pyspark_skewext import __version__, is_enabled


def tell(options: Options) -> int:
    """Make the data, run the contests, leave table and picture, and give the verdict."""
    start = time.perf_counter()
    console.heading(f"pyspark-skewext {__version__}: six tables become one customer table")
    try:
        # Before minutes of work, not after them.
        for directory in (options.cache_dir, options.output):
            directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DemoError(f"cannot write to {error.filename}: {error.strerror}") from error
    data = _data(options)
    variants = [one for one in VARIANTS if options.variant in ("both", one.name)]
    with demo_session(options.master, options.shuffle_partitions) as (spark, work):
        if not is_enabled(spark):
            raise DemoError("the extension is not active in this Spark session")
        settings = _describe(spark, options)
        outcomes = []
        for number, variant in enumerate(variants, start=2):
            console.heading(f"{number}. {variant.title}")
            outcomes.append(contest(spark, data, variant, options.runs, work))
        console.heading(f"{len(variants) + 2}. The joined table")
        problems = [problem for outcome in outcomes for problem in outcome.problems]
        problems += _results(spark, data, variants[0], outcomes, settings, options.output)
    return _verdict(outcomes, problems, time.perf_counter() - start)


def _data(options: Options) -> Path:
    console.line("TPC-DS is the shop of a well-known benchmark. It sells in stores, by catalog")
    console.line(
        "and on the web, and takes goods back; most rows say who the customer was. The six"
    )
    console.line("tables of sales and returns are joined by customer with a full outer join.")
    console.heading("1. The data")
    parameters = (options.cache_dir.resolve(), options.scale_factor, options.duplicates)
    data = cached_data(*parameters)
    if not data.exists():
        with console.step(f"DuckDB makes TPC-DS, scale factor {options.scale_factor:g}, once"):
            make_data(*parameters)
    console.line(f"Scale factor {options.scale_factor:g}, kept in {data}")
    return data


def _describe(spark: SparkSession, options: Options) -> str:
    adaptive = "on" if spark.conf.get("spark.sql.adaptive.enabled") == "true" else "off"
    settings = (
        f"Spark {spark.version}, {options.master}, "
        f"{spark.conf.get('spark.sql.shuffle.partitions')} shuffle partitions, "
        f"adaptive execution {adaptive}"
    )
    console.line(f"{settings},")
    console.line("2 GB of memory, otherwise Spark's defaults; the same for both plans.")
    return settings


def _results(
    spark: SparkSession,
    data: Path,
    variant: Variant,
    outcomes: list[Outcome],
    settings: str,
    output: Path,
) -> list[str]:
    table_file = output.resolve() / "customers.parquet"
    picture_file = output.resolve() / "customers.png"
    with console.step(f"Joining with indicator={INDICATOR!r} and writing the table"):
        table = write_table(spark, data, variant, table_file)
    with console.step("Checking the written table and its indicator"):
        problems = check_table(table, outcomes[0].answer)
    console.line()
    show_first_rows(table)
    console.line()
    with console.step("Drawing the picture"):
        draw_picture(table, outcomes, settings, picture_file)
    console.line(f"Table:   {table_file}")
    console.line(f"Picture: {picture_file}")
    return problems


def _verdict(outcomes: list[Outcome], problems: list[str], seconds: float) -> int:
    console.heading("Verdict")
    for problem in problems:
        console.line(f"WRONG: {problem}")
    if not problems:
        console.line("All answers agree: stock Spark, skewext and DuckDB.")
    for outcome in outcomes:
        console.line(
            f"{outcome.variant.name}: {outcome.answer.rows:,} rows, "
            f"stock {outcome.times_stock.median:.2f} s, skewext {outcome.times_ours.median:.2f} s, "
            f"{outcome.ratio:.1f} times as fast"
        )
    console.line(f"The demo took {seconds:.0f} s.")
    return 1 if problems else 0
