"""The three engines: Spark with the extension, Spark without, DuckDB."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Timer

import duckdb
from pyspark.sql import DataFrame, SparkSession
from stock import PLAIN

from random_sql import functions
from random_sql.literals import row, values
from random_sql.plans import JOINS, Plans, inputs_of, operators_of
from random_sql.reduce import Example
from random_sql.scope import tables_of
from random_sql.settings import ANSI, ENABLED
from random_sql.sinks import Rows, Sinks, comparable
from random_sql.sources import Sources
from random_sql.streams import in_batch
from random_sql.tables import Table
from random_sql.tree import DUCK, FUNCTION, SPARK, VIEW, WITH, Query, With, statements

#: A query that takes longer hangs.
MOST_SECONDS = 120


@dataclass(frozen=True)
class Answer:
    """Rows that arrived at the sink, and how they came about."""

    rows: Rows
    #: The number of inputs of each of our joins.
    joins: list[int]
    operators: frozenset[str]
    #: Functions of the package that were called.
    functions: frozenset[str] = frozenset()

    @property
    def rewritten(self) -> bool:
        """Whether there is an operator of ours in place of joins or windows of Spark's."""
        return self.split or not self.operators.isdisjoint(JOINS)

    @property
    def split(self) -> bool:
        """Whether one of the joins was split."""
        return not self.operators.isdisjoint(("split join", "split as-of join"))


class Engines:
    """A Spark session and a DuckDB connection with the same tables."""

    def __init__(self, spark: SparkSession, home: Path) -> None:
        self._spark = spark
        self._stock = spark.newSession()
        for key, value in PLAIN.items():
            self._stock.conf.set(key, value)
        spark.sparkContext.setCheckpointDir(str(home / "checkpoints"))
        self._home = home
        self._tables: dict[str, Table] = {}
        self._duck = _duck()
        self._sources = Sources(spark, self._stock, home)
        self._sinks = Sinks(self._stock, home)
        self._plans = Plans(spark)
        #: Settings of the last query, and what they were before the first one.
        self._settings: dict[str, str] = {}
        self._before: dict[str, str | None] = {}
        self._mixes_sessions = functions.takes_several_sessions(spark)
        self._batch_table = ""

    def close(self) -> None:
        """Close what is ours; the session is not."""
        self._set({})
        self._sources.drop()
        self._duck.close()

    def load(self, tables: Sequence[Table]) -> None:
        """Make the tables in both, in place of others of their names."""
        if list(self._tables.values()) == list(tables):
            return
        # As the session has it, whatever the query before ran with.
        self._set({})
        self._sources.drop()
        self._tables = {table.name: table for table in tables}
        for table in tables:
            self._load_duck(table)
            self._sources.make(table)
            # Caches are found by their plan, and stock Spark must not find ours.
            stock = self._stock.sql(values(table.columns, table.rows)).where("1 = 1")
            stock.coalesce(1).createOrReplaceTempView(table.name)

    def reload(self) -> None:
        """Make the same tables again."""
        tables = list(self._tables.values())
        self._tables = {}
        self.load(tables)

    def _load_duck(self, table: Table) -> None:
        columns = ", ".join(f"{c.name} {c.kind.duck}" for c in table.columns)
        self._duck.execute(f"CREATE OR REPLACE TABLE {table.name} ({columns})")
        if table.rows:
            rows = ", ".join(row(each, DUCK) for each in table.rows)
            self._duck.execute(f"INSERT INTO {table.name} VALUES {rows}")

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
            for table in self._tables.values():
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
        *views, query = texts
        for view in views:
            self._stock.sql(view)
        frame = self._stock.sql(query)
        return comparable(frame.collect(), frame.columns)

    def spark(self, example: Example, settings: Mapping[str, str]) -> Answer:
        """The rows at the example's sink by Spark with these settings."""
        self._set(settings)
        with self._watched():
            run = functools.partial(self._run, example)
            if example.sink == "foreachBatch":
                read = tables_of(example.query)
                table = next(table for table in example.tables if table.name in read)
                rows = values(table.columns, table.rows)
                self._batch_table = table.name
                return in_batch(self._spark, self._home, rows, table.name, run)
            return run(self._spark)

    def _run(self, example: Example, spark: SparkSession) -> Answer:
        """Run the query and remove what it needed."""
        *views, select = statements(example.query, SPARK)
        named = [each for each in example.query.withs if each.view]
        undo: list[Callable[[], object]] = []
        called: set[str] = set()
        try:
            for each, view in zip(named, views):
                self._make_view(spark, each, view, undo, called)
            frame = spark.sql(select)
            last = self._plans.last(example.sink)
            rows, ran = self._sinks.run(example.sink, frame)
            plan = self._plans.text(ran, last)
            return Answer(rows, inputs_of(plan), operators_of(plan), frozenset(called))
        finally:
            for step in reversed(undo):
                step()

    def _make_view(
        self,
        spark: SparkSession,
        each: With,
        view: str,
        undo: list[Callable[[], object]],
        called: set[str],
    ) -> None:
        if each.how == FUNCTION:
            made, name = None, ""
            # Without the extension it is what the SQL says.
            if self._settings.get(ENABLED) != "false":
                made, name = functions.call(each, functools.partial(self._table, spark))
            called |= {name} if name else set()
            if made is None:
                spark.sql(view)
                made = spark.table(each.name)
            # The result is of the session of its first input, and the query of a batch's.
            made.createOrReplaceGlobalTempView(each.name)
            spark.table(f"global_temp.{each.name}").createOrReplaceTempView(each.name)
            return
        spark.sql(view)
        if each.how in (VIEW, WITH):
            return
        frame = spark.table(each.name)
        if "cached" in each.how:
            lazy = "LAZY " if each.how.startswith("lazily") else ""
            undo.append(functools.partial(spark.catalog.uncacheTable, each.name))
            spark.sql(f"CACHE {lazy}TABLE {each.name}")
        elif each.how == "table":
            name = f"{each.name}_kept"
            undo.append(functools.partial(spark.sql, f"DROP TABLE IF EXISTS {name}"))
            frame.write.mode("overwrite").saveAsTable(name)
            spark.table(name).createOrReplaceTempView(each.name)
        else:
            kept: Callable[[], DataFrame] = getattr(frame, each.how)
            kept().createOrReplaceTempView(each.name)

    def _table(self, spark: SparkSession, name: str) -> DataFrame:
        """A table; in a micro-batch, whose session is a clone, some are of the first session."""
        number = int(name[1:]) if name in self._tables else 0
        if self._mixes_sessions and number % 2 and name != self._batch_table:
            return self._spark.table(name)
        return spark.table(name)

    def failed_rules(self) -> list[str]:
        """What of the extension has failed and was left out, since this was called last."""
        return self._plans.failed_rules()

    def duck_sql(self, text: str) -> Rows:
        """DuckDB's rows of a query as it stands."""
        return comparable(self._duck.execute(text).fetchall(), self._names())

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Cancel a query that hangs; it fails then."""
        timer = Timer(MOST_SECONDS, self._spark.sparkContext.cancelAllJobs)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _set(self, settings: Mapping[str, str]) -> None:
        """Change only the settings that differ from those of the query before."""
        conf = self._spark.conf
        for key in self._settings.keys() - settings.keys():
            before = self._before[key]
            conf.unset(key) if before is None else conf.set(key, before)
        for key, value in settings.items():
            if key not in self._before:
                self._before[key] = conf.get(key, None)
            if self._settings.get(key) != value:
                conf.set(key, value)
        self._settings = dict(settings)


def _duck() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET threads TO 1")
    return connection
