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
from pyspark.sql import DataFrame, SparkSession
from stock import PLAIN

from random_sql.tables import Column, Table
from random_sql.tree import DUCK, SPARK, Query, statements

Rows = Counter[Any]


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
        self._duck = _duck()

    def close(self) -> None:
        """Close what is ours; the session is not."""
        self._duck.close()

    def load(self, tables: Sequence[Table]) -> None:
        """Make the tables in both, in place of others of their names."""
        self._tables = tables
        for table in tables:
            self._load_duck(table)
            self._load_spark(table)

    def _load_duck(self, table: Table) -> None:
        columns = ", ".join(f"{c.name} {c.kind.duck}" for c in table.columns)
        self._duck.execute(f"CREATE OR REPLACE TABLE {table.name} ({columns})")
        if table.rows:
            marks = ", ".join("?" * len(table.columns))
            insert = f"INSERT INTO {table.name} VALUES ({marks})"
            self._duck.executemany(insert, [list(row) for row in table.rows])

    def _load_spark(self, table: Table) -> None:
        if table.form == "file":
            self._files += 1
            path = self._home / f"{table.name}-{self._files}.parquet"
            self._duck.execute(f"COPY {table.name} TO '{path}' (FORMAT parquet)")
            schema = ", ".join(f"{c.name} {c.kind.spark}" for c in table.columns)
            frame = self._spark.read.schema(schema).parquet(str(path))
        elif table.form == "rdd":
            schema = ", ".join(map(_column, table.columns))
            frame = self._spark.createDataFrame(list(table.rows), schema)
        else:
            frame = self._spark.sql(values(table))
        frame = frame.coalesce(1) if table.whole else frame
        frame.createOrReplaceTempView(table.name)
        stock = self._stock.sql(values(table)).coalesce(1)
        stock.createOrReplaceTempView(table.name)

    def duck(self, query: Query, most: int) -> Rows | None:
        """DuckDB's rows; nothing if there are more than that many."""
        *views, select = statements(query, DUCK)
        try:
            for view in views:
                self._duck.execute(view)
            found = self._duck.execute(select).fetchmany(most + 1)
        except (duckdb.FatalException, duckdb.InternalException):
            # After a failed assertion the database does nothing any more.
            self._duck = _duck()
            for table in self._tables:
                self._load_duck(table)
            raise
        return None if len(found) > most else comparable(found)

    def stock(self, query: Query) -> Rows:
        """Spark's rows without the extension."""
        return self.stock_sql(statements(query, SPARK))

    def stock_sql(self, texts: Sequence[str]) -> Rows:
        """The same of statements; the last one is the query."""
        return comparable(_last(self._stock, texts).collect())

    def spark(self, query: Query, settings: Mapping[str, str]) -> tuple[Rows, list[int]]:
        """Spark's rows, and for each of our joins in its optimized plan the number of inputs."""
        with self._settings(settings):
            frame = _last(self._spark, statements(query, SPARK))
            rows = comparable(frame.collect())
            plan: Any = frame._jdf
            return rows, joins_of(plan.queryExecution().optimizedPlan())

    def duck_sql(self, text: str) -> Rows:
        """DuckDB's rows of a query as it stands."""
        return comparable(self._duck.execute(text).fetchall())

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


def comparable(rows: Sequence[Any]) -> Rows:
    """Rows as a multiset; NaN equals NaN, numbers are compared by value."""
    return Counter(tuple(map(_value, row)) for row in rows)


def _value(value: Any) -> Any:
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def values(table: Table) -> str:
    """A query that gives the table's rows and needs nothing else."""
    heads = [f"CAST(column{i} AS {c.kind.spark}) AS {c.name}" for i, c in enumerate(table.columns)]
    if table.rows:
        rows = ", ".join(f"({', '.join(map(literal, row))})" for row in table.rows)
        names = ", ".join(f"column{i}" for i in range(len(table.columns)))
        return f"SELECT {', '.join(heads)} FROM VALUES {rows} AS rows({names})"
    nulls = ", ".join(f"CAST(NULL AS {c.kind.spark}) AS {c.name}" for c in table.columns)
    return f"SELECT {nulls} WHERE false"


def literal(value: Any) -> str:
    """A value as SQL that both engines read."""
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return f"CAST('{value}' AS DOUBLE)"
    return str(value) if isinstance(value, (int, Decimal)) else f"'{value}'"


def _column(column: Column) -> str:
    return f"{column.name} {column.kind.spark}{'' if column.nullable else ' NOT NULL'}"
