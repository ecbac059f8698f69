"""What the joins mean, said with Spark's own joins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

#: What makes tiny queries quick, as compiling code takes longer than running them.
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}

#: Of a JVM that runs many of them: most of the time goes into code that runs only a few times. With
#: the first compiler alone the room for code is an eighth of the usual; they fill it, and then a
#: thread looks all the time for code that may go, and what has gone is compiled again.
QUICK_JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:ReservedCodeCacheSize=256m")

#: Spark as it would be without us, and in one task.
PLAIN = {
    **INTERPRETED,
    "spark.skewext.enabled": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}


@contextmanager
def kept(spark: SparkSession, keys: Iterable[str]) -> Iterator[None]:
    """Give these settings of the session their values back afterwards."""
    before = {key: spark.conf.get(key, None) for key in keys}
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, value)


@contextmanager
def changed(spark: SparkSession, wanted: Mapping[str, object]) -> Iterator[None]:
    """Change settings of the session for a while."""
    with kept(spark, wanted):
        for key, value in wanted.items():
            spark.conf.set(key, str(value))
        yield


def setting(spark: SparkSession, key: str, value: object) -> AbstractContextManager[None]:
    """Change a setting of the session for a while."""
    return changed(spark, {key: value})


def table_of(spark: SparkSession, rows: Sequence[Sequence[Any]], schema: str) -> DataFrame:
    """The rows from SQL. Rows from Python go through Python's workers in each query."""

    def literal(value: Any) -> str:
        if value is None or isinstance(value, int):
            return "NULL" if value is None else str(value)
        return f"'{value}'"

    columns = [column.rsplit(" ", 1) for column in schema.split(", ")]
    casts = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in columns)
    listed = ", ".join(f"({', '.join(map(literal, row))})" for row in rows)
    names = ", ".join(name for name, _ in columns)
    return spark.sql(f"SELECT {casts} FROM VALUES {listed} AS rows({names})")


def stock_join(
    inputs: Sequence[tuple[DataFrame, Sequence[str]]],
    on: Sequence[str],
    roles: Sequence[str] | None = None,
    suffixes: Sequence[str | None] | None = None,
    indicator: str | None = None,
) -> tuple[list[str], list[Any]]:
    """Column names and rows of the same join by a chain of full outer joins, extension off.

    Every input brings a flag along, so that roles are filters over the chain.
    """
    spark = inputs[0][0].sparkSession
    with changed(spark, PLAIN):
        chain = _chain(inputs, on, roles or ["optional"] * len(inputs), indicator)
        rows = chain.collect()
    return _output_names(inputs, on, roles, suffixes, indicator), rows


def _chain(
    inputs: Sequence[tuple[DataFrame, Sequence[str]]],
    on: Sequence[str],
    roles: Sequence[str],
    indicator: str | None,
) -> DataFrame:
    keys = [f"k{n}" for n in range(len(on))]
    chain: DataFrame | None = None
    values: list[str] = []
    for n, (df, own_keys) in enumerate(inputs):
        others = [name for name in df.columns if name not in own_keys]
        names = [*zip(own_keys, keys), *((name, f"v{n}_{m}") for m, name in enumerate(others))]
        flagged = df.select(*(sf.col(f"`{old}`").alias(new) for old, new in names))
        flagged = flagged.withColumn(f"p{n}", sf.lit(True))
        chain = flagged if chain is None else chain.join(flagged, keys, "full")
        if roles[n] != "excluded":
            values += [f"v{n}_{m}" for m in range(len(others))]
    assert chain is not None
    for n, role in enumerate(roles):
        if role == "required":
            chain = chain.where(f"p{n}")
        elif role == "excluded":
            chain = chain.where(f"p{n} is null")
    if indicator is not None:
        present = sf.array(*(sf.when(sf.col(f"p{n}"), sf.lit(n)) for n in range(len(inputs))))
        chain = chain.withColumn("present", sf.filter(present, lambda each: each.isNotNull()))
        values.append("present")
    return chain.select(*keys, *values)


def _output_names(
    inputs: Sequence[tuple[DataFrame, Sequence[str]]],
    on: Sequence[str],
    roles: Sequence[str] | None,
    suffixes: Sequence[str | None] | None,
    indicator: str | None,
) -> list[str]:
    given = [
        [] if roles and roles[n] == "excluded" else [c for c in df.columns if c not in own]
        for n, (df, own) in enumerate(inputs)
    ]
    times = Counter([*on, *(name for names in given for name in names)])
    result = list(on)
    for n, names in enumerate(given):
        suffix = (suffixes[n] if suffixes else None) or ""
        result += [name + suffix if times[name] > 1 else name for name in names]
    return [*result, indicator] if indicator else result
