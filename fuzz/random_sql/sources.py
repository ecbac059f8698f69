"""Tables in Spark: from where they are stored, through their layers, to a view."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import MapType

from pyspark_skewext import write_bucketed
from random_sql.formats import OPTIONS, read_text, write_text
from random_sql.forms import BY_BUCKET, BY_FOLDER, CACHES
from random_sql.literals import from_range, row, schema, values
from random_sql.tables import INT, Column, Table
from random_sql.tree import DUCK

#: Rows of a file at most.
ROWS_OF_FILE = 20

#: The name of a folder whose rows have a null.
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"

#: Says which filter removes a row: none, or the one with this number.
MARK = "z"
JUNK = "junk"


@dataclass(frozen=True)
class Stored:
    """The stored rows of a table, with those that filters remove, under names of their own."""

    name: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]
    #: The names that the table has for them.
    names: tuple[str, ...]

    @property
    def key(self) -> str:
        return self.columns[0].name


def stored(table: Table) -> Stored:
    """The rows of a table as its layers need them."""
    columns, rows = list(table.columns), [*table.rows, *table.noise]
    filters = table.layers.count("filter")
    if filters:
        marks = [0] * len(table.rows) + [1 + n % filters for n in range(len(table.noise))]
        columns.append(Column(MARK, INT, nullable=False))
        rows = [(*each, mark) for each, mark in zip(rows, marks)]
    if "project" in table.layers:
        columns.insert(1, Column(JUNK, INT))
        rows = [(each[0], n, *each[1:]) for n, each in enumerate(rows)]
    if "rename" in table.layers:
        named = {c.name for c in table.columns}
        columns = [replace(c, name=f"{c.name}_") if c.name in named else c for c in columns]
    return Stored(table.name, tuple(columns), tuple(rows), table.names)


class Sources:
    """Makes tables of Spark, and forgets them."""

    def __init__(
        self, spark: SparkSession, stock: SparkSession, home: Path, duck: Any = None
    ) -> None:
        self._spark = spark
        self._stock = stock
        self._home = home
        self._duck = duck or duckdb.connect()
        self._made = 0
        self._tables: list[str] = []
        self._cached: list[DataFrame] = []
        self._cached_names: list[str] = []

    def drop(self) -> None:
        """Remove tables and caches."""
        for frame in self._cached:
            frame.unpersist()
        for name in self._cached_names:
            self._spark.catalog.uncacheTable(name)
            self._spark.catalog.dropTempView(name)
        for name in self._tables:
            self._spark.sql(f"DROP TABLE IF EXISTS {name}")
        self._cached, self._cached_names, self._tables = [], [], []

    def make(self, table: Table) -> None:
        """Make the view of that name."""
        self._made += 1
        rows = stored(table)
        frame = self._frame(table.form, rows)
        frame = frame.coalesce(1) if table.whole else frame
        filters = 0
        for layer in table.layers:
            filters += layer == "filter"
            frame = self._layer(layer, frame, rows, filters)
        if frame.columns != list(table.names):
            frame = frame.select(*table.names)
        frame.createOrReplaceTempView(table.name)

    # Where rows are stored

    def _frame(self, form: str, rows: Stored) -> DataFrame:
        spark, inline = self._spark, values(rows.columns, rows.rows)
        if form == "values":
            return spark.sql(inline)
        if form == "range":
            parts = 3 if len(rows.rows) % 2 else 1
            return spark.sql(from_range(rows.columns, rows.rows, parts))
        if form == "rdd":
            parts = 1 + len(rows.rows) // ROWS_OF_FILE
            listed = spark.sparkContext.parallelize(self._stock.sql(inline).collect(), parts)
            return spark.createDataFrame(listed, schema(rows.columns))
        if form.startswith("parquet"):
            return self._parquet(form, rows)
        if form in ("mapInPandas", "mapInArrow"):
            same: Callable[..., Any] = getattr(spark.sql(inline), form)
            made: DataFrame = same(_unchanged, schema(rows.columns))
            return made
        if form == "table" or form in BY_BUCKET or form.startswith(("delta", "iceberg")):
            return self._table(form, rows)
        return self._files(form, rows)

    def _path(self, name: str) -> Path:
        path = self._home / f"{name}-{self._made}"
        path.mkdir()
        return path

    def _parquet(self, form: str, rows: Stored) -> DataFrame:
        """Files by DuckDB, which takes a tenth of Spark's time."""
        columns = ", ".join(f"{c.name} {c.kind.duck}" for c in rows.columns)
        self._duck.execute(f"CREATE OR REPLACE TEMP TABLE stored ({columns})")
        if rows.rows:
            listed = ", ".join(row(each, DUCK) for each in rows.rows)
            self._duck.execute(f"INSERT INTO stored VALUES {listed}")
        path = self._path(rows.name)
        for number, (folder, rest) in enumerate(_parts(form, rows)):
            (path / folder).mkdir(exist_ok=True)
            file = path / folder / f"{number}.parquet"
            self._duck.execute(f"COPY ({rest}) TO '{file}' (FORMAT parquet)")
        types = ", ".join(f"{c.name} {c.kind.spark}" for c in rows.columns)
        return self._spark.read.schema(types).parquet(str(path))

    def _files(self, form: str, rows: Stored) -> DataFrame:
        """Files by Spark without the extension."""
        kind = form.split(",")[0]
        path = str(self._path(rows.name) / kind)
        frame = self._stock.sql(values(rows.columns, rows.rows))
        if kind == "text":
            write_text(frame, path)
            return read_text(self._spark, path, schema(rows.columns))
        writer = frame.write.format(kind).options(**OPTIONS.get(kind, {}))
        writer = writer.option("maxRecordsPerFile", ROWS_OF_FILE)
        if form in BY_FOLDER:
            writer = writer.partitionBy(rows.columns[_folder(rows)].name)
        writer.save(path)
        reader = self._spark.read.format(kind).options(**OPTIONS.get(kind, {}))
        return reader.schema(schema(rows.columns)).load(path)

    def _table(self, form: str, rows: Stored) -> DataFrame:
        name = f"{rows.name}_stored_{self._made}"
        frame = self._stock.sql(values(rows.columns, rows.rows))
        if form == "our buckets":
            frame = self._spark.sql(values(rows.columns, rows.rows))
            write_bucketed(frame, name, by=rows.key, buckets=3)
        elif form == "buckets":
            frame.coalesce(1).write.bucketBy(3, rows.key).sortBy(rows.key).saveAsTable(name)
        elif form.startswith("iceberg"):
            name = f"ice.db.{name}"
            writer = frame.writeTo(name).using("iceberg")
            if form in BY_FOLDER:
                # Iceberg has no buckets of floating-point numbers.
                family = rows.columns[0].kind.family
                by = _folder(rows) if family == "double" else 0
                writer = writer.partitionedBy(sf.bucket(2, sf.col(rows.columns[by].name)))
            writer.create()
        elif form.startswith("delta"):
            self._delta(form, rows, name, frame)
        else:
            frame.write.option("maxRecordsPerFile", ROWS_OF_FILE).saveAsTable(name)
        self._tables.append(name)
        return self._spark.table(name)

    def _delta(self, form: str, rows: Stored, name: str, frame: DataFrame) -> None:
        """A table of Delta; one with deletion vectors has lost every row of a copy of some."""
        writer = frame.write.format("delta")
        if form == "delta":
            writer.saveAsTable(name)
            return
        gone = frame.limit(4).withColumn("gone", sf.lit(True))
        both = frame.withColumn("gone", sf.lit(False)).unionByName(gone)
        writer = both.coalesce(1).write.format("delta")
        writer.option("delta.enableDeletionVectors", "true").saveAsTable(name)
        self._stock.sql(f"DELETE FROM {name} WHERE gone")

    # Layers

    def _layer(self, layer: str, frame: DataFrame, rows: Stored, filters: int) -> DataFrame:
        name = f"{rows.name}_{self._made}_{len(self._cached_names)}_{len(self._cached)}"
        if layer in CACHES:
            return self._cache(layer, frame, name)
        columns = frame.columns
        # Spark neither sorts nor partitions by a map.
        key = next(f.name for f in frame.schema if not isinstance(f.dataType, MapType))
        if layer == "checkpoint":
            return frame.checkpoint()
        if layer == "localCheckpoint":
            return frame.localCheckpoint()
        if layer == "filter":
            form = (
                "{} <> {}",
                "NOT ({} = {})",
                "({} IS NULL OR {} <> {})",
                "coalesce({}, 9) <> {}",
            )
            text = form[self._made % len(form)]
            args = (MARK,) * (text.count("{}") - 1)
            return frame.where(text.format(*args, filters))
        if layer == "rename":
            return frame.select(*(sf.col(c).alias(_name(c, rows)) for c in columns))
        if layer == "project":
            return frame.select(*reversed([c for c in columns if c != JUNK]))
        if layer == "view":
            frame.createOrReplaceTempView(f"below_{rows.name}")
            return self._spark.table(f"below_{rows.name}")
        simple: dict[str, Callable[[], DataFrame]] = {
            "union": lambda: frame.where(f"{key} IS NULL").unionAll(
                frame.where(f"{key} IS NOT NULL")
            ),
            "repartition": lambda: frame.repartition(2),
            "repartition by key": lambda: frame.repartition(2, key),
            "sort": lambda: frame.sort(key),
            "sample": lambda: frame.sample(1.0, seed=1),
            "limit": lambda: frame.limit(10**6),
            "python udf": lambda: _by_python(frame),
        }
        return simple[layer]()

    def _cache(self, layer: str, frame: DataFrame, name: str) -> DataFrame:
        if layer.startswith("persist"):
            frame = frame.persist(getattr(StorageLevel, layer.split()[1]))
            self._cached.append(frame)
            # Adaptive execution knows the size of a cache that is there already.
            if self._made % 2:
                frame.count()
            return frame
        frame.createOrReplaceTempView(name)
        self._spark.sql(f"{layer} {name}")
        self._cached_names.append(name)
        return self._spark.table(name)


def _name(column: str, rows: Stored) -> str:
    return column[:-1] if column[:-1] in rows.names else column


def _by_python(frame: DataFrame) -> DataFrame:
    """The same rows, one column of which has been in Python."""
    name, kind = next(each for each in frame.dtypes if each[1] in ("int", "bigint", "string"))
    same = sf.udf(_same, kind)
    return frame.select(*(same(c).alias(c) if c == name else c for c in frame.columns))


def _same(value: Any) -> Any:
    return value


def _unchanged(batches: Iterator[Any]) -> Iterator[Any]:
    yield from batches


def _folder(rows: Stored) -> int:
    """The column whose values are names of folders: the key, but for what such a name is not."""
    family = rows.columns[0].kind.family
    if family in ("number", "date", "truth"):
        return 0
    return next(n for n, c in enumerate(rows.columns) if c.name.startswith("n"))


def _parts(form: str, rows: Stored) -> Iterator[tuple[str, str]]:
    """The folder of each file, and the query of what is in it."""
    if form == "parquet, partitioned":
        place = _folder(rows)
        column = rows.columns[place].name
        for value in dict.fromkeys(each[place] for each in rows.rows):
            text = "NULL" if value is None else f"'{value}'"
            folder = NO_VALUE if value is None else value
            select = f"SELECT * EXCLUDE {column} FROM stored"
            yield f"{column}={folder}", f"{select} WHERE {column} IS NOT DISTINCT FROM {text}"
        if not rows.rows:
            # A folder whose name fits each type.
            yield f"{column}={NO_VALUE}", f"SELECT * EXCLUDE {column} FROM stored"
        return
    if form == "parquet, columns missing":
        # The second column that a value can be missing of: not the key that joins use most.
        column = next(c.name for c in rows.columns[1:] if c.nullable)
        yield ".", f"SELECT * EXCLUDE {column} FROM stored WHERE {column} IS NULL"
        yield ".", f"SELECT * FROM stored WHERE {column} IS NOT NULL"
        return
    for start in range(0, len(rows.rows) or 1, ROWS_OF_FILE):
        yield ".", f"SELECT * FROM stored LIMIT {ROWS_OF_FILE} OFFSET {start}"
