"""The demo, `make demo`: six TPC-DS tables become one customer table.

DuckDB makes the data, so nothing is downloaded. Stock Spark's chain of five full outer joins, the
one join of skewext, and DuckDB join the same files. The demo compares their plans, answers and
times, and leaves the joined table and a picture.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from functools import reduce
from io import StringIO
from pathlib import Path
from statistics import median
from typing import NamedTuple, TypeVar

import duckdb
from matplotlib.figure import Figure
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pyspark_skewext import configure, multi_full_join

T = TypeVar("T")
KEY = "customer_sk"
INDICATOR = "sources"
STOCK, OURS, DUCKDB = "stock Spark", "skewext", "DuckDB"
#: One row per customer in each input, or up to two rows; all rows without a customer.
VARIANTS = ("customers", "duplicates")

_SALES = ("net_paid", "ext_tax", "ext_discount_amt", "ext_list_price", "net_profit")
_RETURNS = ("refunded_cash", "return_tax", "fee", "net_loss")


class Source(NamedTuple):
    """One of the six tables: its name, the start of its column names, and some columns."""

    table: str
    start: str
    customer: str
    order: str
    day: str
    measures: tuple[str, ...]

    @property
    def prefix(self) -> str:
        """Start of the output columns, which makes names unique: ``web`` or ``web_return``."""
        return self.table.replace("_sales", "").replace("_returns", "_return")


_SOLD, _RETURNED = "sold_date_sk", "returned_date_sk"
SOURCES = (
    Source("store_sales", "ss", "customer_sk", "ticket_number", _SOLD, _SALES),
    Source("catalog_sales", "cs", "bill_customer_sk", "order_number", _SOLD, _SALES),
    Source("web_sales", "ws", "bill_customer_sk", "order_number", _SOLD, _SALES),
    Source("store_returns", "sr", "customer_sk", "ticket_number", _RETURNED, _RETURNS),
    Source("catalog_returns", "cr", "returning_customer_sk", "order_number", _RETURNED, _RETURNS),
    Source("web_returns", "wr", "returning_customer_sk", "order_number", _RETURNED, _RETURNS),
)


def quoted(file: Path) -> str:
    """A file as SQL names it."""
    return "'" + str(file).replace("'", "''") + "'"


def query_of(source: Source, variant: str) -> str:
    """SQL that makes an input of the customer join out of a TPC-DS table."""
    start, prefix = source.start, source.prefix
    key, order, item = (f"{start}_{name}" for name in (source.customer, source.order, "item_sk"))
    measures = {f"{prefix}_{name}": f"{start}_{name}" for name in source.measures}
    tables = (
        f"{source.table} LEFT JOIN date_dim ON d_date_sk = {start}_{source.day} "
        f"LEFT JOIN item ON i_item_sk = {item}"
    )
    if variant == "customers":
        sums = "".join(f", sum({c})::DECIMAL(18, 2) AS {name}" for name, c in measures.items())
        return (
            f"SELECT {key}::INTEGER AS {KEY}, count(*) AS {prefix}_lines, "
            f"count(DISTINCT {order}) AS {prefix}_orders, min(d_date) AS {prefix}_first_day, "
            f"max(d_date) AS {prefix}_last_day, "
            f"arg_max(i_category, ({next(iter(measures.values()))}, {order}, {item})) "
            f"AS {prefix}_top_category{sums} FROM {tables} GROUP BY {key} ORDER BY {KEY}"
        )
    two = "".join(f", {c} AS {name}" for name, c in list(measures.items())[:2])
    # Two rows in each of six inputs are up to 64 rows of a customer.
    return (
        f"SELECT {key}::INTEGER AS {KEY}, 1 AS {prefix}_lines, "
        f"{order}::BIGINT AS {prefix}_order, {item}::INTEGER AS {prefix}_item, "
        f"d_date AS {prefix}_day, i_category AS {prefix}_category{two} FROM {tables} "
        f"QUALIFY {key} IS NULL OR row_number() OVER (PARTITION BY {key} "
        f"ORDER BY d_date DESC NULLS LAST, {order} DESC, {item} DESC) <= 2 "
        f"ORDER BY {KEY}, {prefix}_order, {prefix}_item"
    )


def make_data(cache: Path, scale_factor: float) -> Path:
    """Write the inputs of both variants, unless the cache has them; an interrupt leaves nothing."""
    target = cache / f"tpcds-sf{scale_factor:g}-v2"
    if target.exists():
        return target
    cache.mkdir(parents=True, exist_ok=True)
    print(f"DuckDB makes TPC-DS, scale factor {scale_factor:g}, once ...", flush=True)
    with tempfile.TemporaryDirectory(prefix="making-", dir=cache) as name:
        made = Path(name) / "made"
        with duckdb.connect(f"{name}/tpcds.duckdb") as database:
            # The generator is a part of the wheel; no look at the network.
            database.execute("SET autoinstall_known_extensions = false")
            database.execute("SET enable_progress_bar = false")
            database.execute(f"LOAD tpcds; CALL dsdgen(sf={scale_factor!r})")
            for variant in VARIANTS:
                (made / variant).mkdir(parents=True)
                for source in SOURCES:
                    file = made / variant / f"{source.table}.parquet"
                    query = query_of(source, variant)
                    database.execute(f"COPY ({query}) TO {quoted(file)} (FORMAT parquet)")
        made.rename(target)
    return target


@contextmanager
def demo_session() -> Iterator[tuple[SparkSession, Path]]:
    """A session as a newcomer has it, with the extension, and a folder for as long as it runs."""
    with tempfile.TemporaryDirectory(prefix="skewext-demo-") as name:
        builder = (
            SparkSession.builder.appName("skewext demo")
            .master("local[2]")
            .config("spark.sql.shuffle.partitions", "16")
            .config("spark.driver.memory", "2g")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.warehouse.dir", f"{name}/warehouse")
        )
        spark = configure(builder).getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        try:
            yield spark, Path(name)
        finally:
            spark.stop()


def read(spark: SparkSession, data: Path) -> list[DataFrame]:
    """Open the six inputs of a variant."""
    return [spark.read.parquet(str(data / f"{source.table}.parquet")) for source in SOURCES]


def fingerprint(df: DataFrame) -> tuple[int, int]:
    """Row count, and a sum of hashes of all rows, which does not depend on their order.

    ``xxhash64`` skips nulls, so the places of nulls are hashed as well.
    """
    columns = [F.col(f"`{name}`") for name in df.columns]
    hashed = F.xxhash64(*columns, *(column.isNull() for column in columns))
    found = df.agg(F.count(F.lit(1)), F.sum(hashed.cast("decimal(38, 0)"))).collect()[0]
    return int(found[0]), int(found[1] or 0)


def plan_of(df: DataFrame) -> Counter[str]:
    """How often each operator is in the plan that Spark makes before it runs the query."""
    printed = StringIO()
    with redirect_stdout(printed):
        df.explain()
    # On Spark 4 the joins of skewext follow, as text.
    plan = printed.getvalue().split("== Extended")[0]
    return Counter(re.findall(r"^[\s:+*()\d-]*(\w+)", plan, re.MULTILINE))


def seconds_of(df: DataFrame) -> float:
    """Seconds that all rows and columns take, which are then thrown away."""
    start = time.perf_counter()
    df.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - start


def stock_chain(inputs: Sequence[DataFrame]) -> DataFrame:
    """The same join by Spark alone: five full outer joins."""
    return reduce(lambda left, right: left.join(right, KEY, "full"), inputs)


def wrong_indicators(joined: DataFrame) -> int:
    """Rows whose indicator differs from the columns that are never null in their input."""
    places = [
        F.when(F.col(f"{source.prefix}_lines").isNotNull(), F.lit(position))
        for position, source in enumerate(SOURCES)
    ]
    expected = F.filter(F.array(*places), lambda place: place.isNotNull())
    return joined.where(~F.col(INDICATOR).eqNullSafe(expected)).count()


def contest(
    spark: SparkSession, data: Path, runs: int, answer: Path
) -> tuple[list[str], list[float]]:
    """Compare plans, answers and times of one variant: the problems, and both median times."""
    inputs = read(spark, data)
    legs = {STOCK: stock_chain(inputs), OURS: multi_full_join(*inputs, on=KEY)}
    first, *others = [quoted(data / f"{source.table}.parquet") for source in SOURCES]
    chain = first + "".join(f" FULL JOIN {file} USING ({KEY})" for file in others)
    duckdb.sql(f"COPY (SELECT * FROM {chain}) TO {quoted(answer)} (FORMAT parquet)")
    frames = {**legs, DUCKDB: spark.read.parquet(str(answer))}

    def alone(name: str, function: Callable[[DataFrame], T]) -> T:
        """Call it with the extension on for our join only."""
        spark.conf.set("spark.skewext.enabled", str(name == OURS).lower())
        try:
            return function(frames[name])
        finally:
            spark.conf.unset("spark.skewext.enabled")

    problems = []
    plans = {name: alone(name, plan_of) for name in legs}
    for name, plan in plans.items():
        joins = {operator: n for operator, n in plan.items() if operator.endswith("Join")}
        shown = ", ".join(f"{n} x {operator}" for operator, n in joins.items())
        print(f"  {name:<12} {plan['Exchange']:>3} Exchange {plan['Sort']:>3} Sort   {shown}")
        if (joins == {"MultiFullJoin": 1}) != (name == OURS):
            problems.append(f"{name} has the joins {shown}")
    answers = {name: alone(name, fingerprint) for name in frames}
    print("  rows and checksum")
    for name, found in answers.items():
        print(f"  {name:<12} {found}")
        if found != answers[DUCKDB]:
            problems.append(f"{name} and {DUCKDB} have different answers")
    if wrong := wrong_indicators(multi_full_join(*inputs, on=KEY, indicator=INDICATOR)):
        problems.append(f"the column {INDICATOR} is wrong in {wrong:,} rows")
    times: dict[str, list[float]] = {name: [] for name in legs}
    for run in range(runs):
        # By turns, so that neither leg always profits from running last.
        for name in list(legs) if run % 2 else reversed(legs):
            times[name].append(alone(name, seconds_of))
    medians = [median(times[name]) for name in (STOCK, OURS)]
    print(f"  {STOCK} {medians[0]:.2f} s, {OURS} {medians[1]:.2f} s (medians of {runs} runs):")
    print(f"  {OURS} is {medians[0] / medians[1]:.1f} times as fast", flush=True)
    return problems, medians


def draw(file: Path, table: DataFrame, medians: Sequence[Sequence[float]]) -> None:
    """One picture: how many customers each combination of channels has, and the times."""
    known = table.where(F.col(KEY).isNotNull()).groupBy(INDICATOR)
    rows = known.agg(F.countDistinct(KEY).alias("n")).orderBy(F.col("n").desc()).limit(12).collect()
    labels = []
    for known_by in (set(row[INDICATOR]) for row in rows):
        missing = [source.table for i, source in enumerate(SOURCES) if i not in known_by]
        labels.append("all but " + ", ".join(missing) if missing else "all six tables")
    figure = Figure(figsize=(13, 5), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[3, 2])
    bars = left.barh(labels, [row["n"] for row in rows], color="#17808a")
    left.bar_label(bars, fmt="{:,.0f}")
    left.invert_yaxis()
    left.set_title("Customers by the tables that have them", loc="left")
    for offset, name, color in ((-0.2, STOCK, "#9aa5b1"), (0.2, OURS, "#d9622b")):
        heights = [pair[name == OURS] for pair in medians]
        places = [position + offset for position in range(len(heights))]
        right.bar_label(right.bar(places, heights, 0.38, color=color, label=name), fmt="%.2f s")
    right.set_xticks(range(len(medians)), VARIANTS)
    right.set_title("Time of the six-way full join", loc="left")
    right.legend(frameon=False)
    figure.savefig(file, dpi=130)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo: 0 if all answers agree, 1 if one differs."""
    base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    parser = argparse.ArgumentParser(
        "make demo", description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--scale-factor", type=float, default=0.5, help="size of TPC-DS in GB")
    parser.add_argument("--runs", type=int, default=3, help="timed runs of each plan")
    parser.add_argument("--cache", type=Path, default=base / "pyspark-skewext/demo", help="data")
    parser.add_argument("--output", type=Path, default=Path("skewext-demo"), help="table, picture")
    options = parser.parse_args(argv)
    output = options.output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    table, picture = str(output / "customers.parquet"), output / "customers.png"
    data = make_data(options.cache.resolve(), options.scale_factor)
    problems, medians = [], []
    with demo_session() as (spark, work):
        for variant in VARIANTS:
            print(f"\n{variant}: joined by Spark {spark.version} and DuckDB", flush=True)
            found, times = contest(spark, data / variant, options.runs, work / f"{variant}.parquet")
            problems += [f"{variant}: {problem}" for problem in found]
            medians.append(times)
        joined = multi_full_join(*read(spark, data / VARIANTS[0]), on=KEY, indicator=INDICATOR)
        joined.write.mode("overwrite").parquet(table)
        draw(picture, spark.read.parquet(table), medians)
    print(f"\nTable:   {table}\nPicture: {picture}")
    for problem in problems:
        print(f"WRONG: {problem}")
    if not problems:
        print(f"All answers agree: {STOCK}, {OURS} and {DUCKDB}.")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
