"""The three who answer: Spark with the extension, Spark without, DuckDB."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
from pyspark.sql import DataFrame, Row, SparkSession
from stock import PLAIN

from random_sql.tables import BUCKETS, Column, Raw, Table
from random_sql.tree import DUCK, SPARK, Query, statements

Rows = Counter[Any]

ANSI = "spark.sql.ansi.enabled"


class Engines:
    """A Spark session and a DuckDB connection with the same tables."""

    def __init__(self, spark: SparkSession, home: Path) -> None:
        self._spark = spark
        self._stock = spark.newSession()
        for key, value in PLAIN.items():
            self._stock.conf.set(key, value)
        self._home = home
        self._files = 0
        self._tables: Sequence[Table] = ()
        self._bucketed: list[str] = []
        self._duck = _duck()

    def close(self) -> None:
        """Close what is ours; the session is not."""
        self._drop()
        self._duck.close()

    def _drop(self) -> None:
        for name in self._bucketed:
            self._spark.sql(f"DROP TABLE IF EXISTS {name}")
        self._bucketed.clear()

    def load(self, tables: Sequence[Table]) -> None:
        """Make the tables in both, in place of others of their names."""
        self._tables = tables
        self._drop()
        for table in tables:
            self._load_duck(table)
            self._load_spark(table)

    def _load_duck(self, table: Table) -> None:
        columns = ", ".join(f"{c.name} {c.kind.duck}" for c in table.columns)
        self._duck.execute(f"CREATE OR REPLACE TABLE {table.name} ({columns})")
        if table.rows:
            rows = ", ".join(_row(row, DUCK) for row in table.rows)
            self._duck.execute(f"INSERT INTO {table.name} VALUES {rows}")

    def _load_spark(self, table: Table) -> None:
        self._files += 1
        inline = self._spark.sql(values(table))
        if table.form == "file":
            frame = self._written(table)
        elif table.form == BUCKETS:
            name = f"{table.name}_in_buckets_{self._files}"
            self._bucketed.append(name)
            writer = inline.coalesce(1).write.bucketBy(3, "k").sortBy("k")
            writer.saveAsTable(name)
            frame = self._spark.table(name)
        elif table.form == "rdd":
            schema = ", ".join(map(_column, table.columns))
            frame = self._spark.createDataFrame(self._stock.sql(values(table)).collect(), schema)
        else:
            frame = inline
        frame = frame.coalesce(1) if table.whole else frame
        frame.createOrReplaceTempView(table.name)
        stock = self._stock.sql(values(table)).coalesce(1)
        stock.createOrReplaceTempView(table.name)

    def _written(self, table: Table) -> DataFrame:
        """Parquet files, of which there are several if the table is not small."""
        path = self._home / f"{table.name}-{self._files}.parquet"
        path.mkdir()
        most = 20
        for start in range(0, len(table.rows) or 1, most):
            part = f"SELECT * FROM {table.name} LIMIT {most} OFFSET {start}"
            self._duck.execute(f"COPY ({part}) TO '{path}/{start}.parquet' (FORMAT parquet)")
        schema = ", ".join(f"{c.name} {c.kind.spark}" for c in table.columns)
        return self._spark.read.schema(schema).parquet(str(path))

    def duck(self, query: Query, most: int) -> Rows | None:
        """DuckDB's rows; nothing if there are more than that many."""
        *views, select = statements(query, DUCK)
        try:
            for view in views:
                self._duck.execute(view)
            found = self._duck.execute(select).fetchmany(most + 1)
            names = self._names()
        except (duckdb.FatalException, duckdb.InternalException):
            # After a failed assertion the database does nothing any more.
            self._duck = _duck()
            for table in self._tables:
                self._load_duck(table)
            raise
        return None if len(found) > most else comparable(found, names)

    def _names(self) -> list[str]:
        return [column[0] for column in self._duck.description or ()]

    def stock(self, query: Query, settings: Mapping[str, str]) -> Rows:
        """Spark's rows without the extension; of the settings only those that change answers."""
        ansi = settings.get(ANSI, "false")
        self._stock.conf.set(ANSI, ansi)
        return self.stock_sql(statements(query, SPARK))

    def stock_sql(self, texts: Sequence[str]) -> Rows:
        """The same of statements; the last one is the query."""
        frame = _last(self._stock, texts)
        return comparable(frame.collect(), frame.columns)

    def spark(self, query: Query, settings: Mapping[str, str]) -> tuple[Rows, list[int], bool]:
        """Spark's rows, the number of inputs of each of our joins, and whether one was split."""
        with self._settings(settings):
            frame = _last(self._spark, statements(query, SPARK))
            rows = comparable(frame.collect(), frame.columns)
            plan: Any = frame._jdf
            made = plan.queryExecution()
            split = "MultiFullJoin (skew: " in made.executedPlan().toString()
            return rows, joins_of(made.optimizedPlan()), split

    def duck_sql(self, text: str) -> Rows:
        """DuckDB's rows of a query as it stands."""
        return comparable(self._duck.execute(text).fetchall(), self._names())

    @contextmanager
    def _settings(self, settings: Mapping[str, str]) -> Iterator[None]:
        conf = self._spark.conf
        before = {key: conf.get(key, None) for key in settings}
        try:
            for key, value in settings.items():
                conf.set(key, value)
            yield
        finally:
            for key, value in before.items():
                if value is None:
                    conf.unset(key)
                else:
                    conf.set(key, value)


def _last(spark: SparkSession, texts: Sequence[str]) -> DataFrame:
    *views, query = texts
    for view in views:
        spark.sql(view)
    return spark.sql(query)


def _duck() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET threads TO 1")
    return connection


def joins_of(plan: Any) -> list[int]:
    """The number of inputs of each MultiFullJoin in a plan of the JVM."""
    if "MultiFullJoin" not in plan.toString():
        return []
    children = plan.children()
    inner = [n for i in range(children.size()) for n in joins_of(children.apply(i))]
    return [children.size(), *inner] if plan.nodeName() == "MultiFullJoin" else inner


def comparable(rows: Sequence[Any], names: Sequence[str]) -> Rows:
    """Rows as a multiset; NaN equals NaN, numbers are compared by value.

    But zeros of columns that nothing looks into, which keep their sign.
    """
    exact = [name.startswith("x") for name in names]
    return Counter(tuple(map(_value, row, exact)) for row in rows)


def _value(value: Any, exact: bool) -> Any:
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        return "-0.0" if exact and value == 0 and math.copysign(1, value) < 0 else value
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    if isinstance(value, Row):
        value = value.asDict()
    if isinstance(value, dict):
        return frozenset((key, _value(each, exact)) for key, each in value.items())
    if isinstance(value, list):
        return tuple(_value(each, exact) for each in value)
    return value


def values(table: Table) -> str:
    """A query that gives the table's rows and needs nothing else."""
    heads = [f"CAST(column{i} AS {c.kind.spark}) AS {c.name}" for i, c in enumerate(table.columns)]
    if table.rows:
        rows = ", ".join(_row(row, SPARK) for row in table.rows)
        names = ", ".join(f"column{i}" for i in range(len(table.columns)))
        return f"SELECT {', '.join(heads)} FROM VALUES {rows} AS rows({names})"
    nulls = ", ".join(f"CAST(NULL AS {c.kind.spark}) AS {c.name}" for c in table.columns)
    return f"SELECT {nulls} WHERE false"


def _row(row: Sequence[Any], dialect: int) -> str:
    return f"({', '.join(literal(value, dialect) for value in row)})"


def literal(value: Any, dialect: int) -> str:
    """A value as SQL."""
    if isinstance(value, Raw):
        return value.spark if dialect == SPARK else value.duck
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return f"CAST('{value}' AS DOUBLE)"
    return str(value) if isinstance(value, (int, Decimal)) else f"'{value}'"


def _column(column: Column) -> str:
    return f"{column.name} {column.kind.spark}{'' if column.nullable else ' NOT NULL'}"
