"""One variant of the data: stock Spark's chain of joins against the one N-way join."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from demo import console
from demo.compare import (
    Fingerprint,
    Timings,
    fingerprint,
    interleaved,
    only_in_first,
    run,
    setting,
)
from demo.data import facts, write_duckdb_answer
from demo.inputs import INPUTS, KEY, Variant, input_file
from demo.plans import OPERATOR, PlanShape, plan_shape
from pyspark_skewext import multi_full_join

STOCK = "stock Spark"
OURS = "skewext"
DUCKDB = "DuckDB"
SWITCH = "spark.skewext.enabled"


@dataclass(frozen=True)
class Outcome:
    """What a contest found."""

    variant: Variant
    times_stock: Timings
    times_ours: Timings
    answer: Fingerprint
    problems: list[str]

    @property
    def ratio(self) -> float:
        """How many times as fast as stock Spark, by the median runs."""
        return self.times_stock.median / self.times_ours.median


def read_inputs(spark: SparkSession, data: Path, variant: Variant) -> list[DataFrame]:
    """Open the six prepared files in Spark."""
    return [spark.read.parquet(str(input_file(data, variant, source))) for source in INPUTS]


def stock_chain(inputs: list[DataFrame]) -> DataFrame:
    """The join as one writes it without us: five full outer joins, one after the other."""
    return reduce(lambda left, right: left.join(right, KEY, "full"), inputs)


def contest(spark: SparkSession, data: Path, variant: Variant, runs: int, work: Path) -> Outcome:
    """Tell what goes in, compare plans, answers and times, and collect what is wrong."""
    _print_facts(data, variant)
    inputs = read_inputs(spark, data, variant)
    stock = stock_chain(inputs)
    ours = multi_full_join(*inputs, on=KEY)

    problems = [f"{variant.name}: {one}" for one in _compare_plans(spark, stock, ours)]

    answer_file = work / f"duckdb-{variant.name}.parquet"
    with console.step("DuckDB joins the same files"):
        write_duckdb_answer(data, variant, answer_file)
    duckdb = spark.read.parquet(str(answer_file))
    with setting(spark, SWITCH, "false"):
        with console.step("Spark sums up the rows of the stock chain (also its warm-up)"):
            stock_answer = fingerprint(stock)
        with console.step("Spark sums up the rows of DuckDB's answer"):
            duckdb_answer = fingerprint(duckdb)
    with console.step("Spark sums up the rows of multi_full_join (also its warm-up)"):
        ours_answer = fingerprint(ours)
    answers = {STOCK: stock_answer, OURS: ours_answer, DUCKDB: duckdb_answer}
    console.line()
    console.table(
        ["answer of", "rows", "checksum of all rows"],
        [[name, found.rows, str(found.checksum)] for name, found in answers.items()],
    )
    if duckdb_answer == stock_answer == ours_answer:
        console.line("The three answers are the same multiset of rows.")
    for name, found in answers.items():
        if found != stock_answer:
            other = {OURS: ours, DUCKDB: duckdb}[name]
            problems.append(f"{variant.name}: {name} and {STOCK} have different answers")
            _show_differences(name, other, stock)

    def run_stock() -> float:
        with setting(spark, SWITCH, "false"):
            return run(stock)

    console.line()
    times = interleaved({STOCK: run_stock, OURS: lambda: run(ours)}, runs, console.line)
    outcome = Outcome(variant, times[STOCK], times[OURS], stock_answer, problems)
    console.line()
    console.table(
        ["time in s", "median", "min"],
        [[name, timings.median, timings.best] for name, timings in times.items()],
    )
    console.line(f"{OURS} is {outcome.ratio:.1f} times as fast (median to median).")
    return outcome


def _print_facts(data: Path, variant: Variant) -> None:
    console.table(
        ["input", "rows", "customers", "rows without customer", "most rows of one", "columns"],
        [
            [one.table, one.rows, one.customers, one.null_keys, one.most_rows, one.columns]
            for one in facts(data, variant)
        ],
    )
    console.line()


def _compare_plans(spark: SparkSession, stock: DataFrame, ours: DataFrame) -> list[str]:
    with setting(spark, SWITCH, "false"):
        stock_shape = plan_shape(stock)
    ours_shape = plan_shape(ours)
    console.table(
        ["plan of", "Exchange", "Sort", "joins"],
        [_plan_row(STOCK, stock_shape), _plan_row(OURS, ours_shape)],
    )
    console.line("An Exchange sends every row to where its key belongs, a Sort orders them.")
    console.line()
    problems = []
    if OPERATOR in stock_shape.joins:
        problems.append(f"the stock plan has a {OPERATOR}, so it is not stock Spark's")
    if not ours_shape.is_ours:
        problems.append(f"the plan of multi_full_join is not one {OPERATOR}")
    elif ours_shape.exchanges != len(INPUTS):
        problems.append(f"{ours_shape.exchanges} Exchanges in our plan, {len(INPUTS)} expected")
    return problems


def _plan_row(name: str, shape: PlanShape) -> list[object]:
    return [name, shape.exchanges, shape.sorts, shape.describe_joins()]


def _show_differences(name: str, other: DataFrame, stock: DataFrame) -> None:
    for title, rows in (
        (f"only {name} has", only_in_first(other, stock)),
        (f"only {STOCK} has", only_in_first(stock, other)),
    ):
        for row in rows:
            console.line(f"{title}: {row}")
