"""Sinks: how the rows of a query leave Spark, and which answers are right."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf

from random_sql.formats import FILE_SINKS, OPTIONS, read_text, write_text

Rows = Counter[Any]

#: Whether Spark's functions of pandas work here.
HAS_PANDAS = find_spec("pandas") is not None and find_spec("pyarrow") is not None

#: How often each one is dealt.
SINKS = {
    "collect": 44,
    "toLocalIterator": 3,
    "rdd": 3,
    "count": 3,
    "limit": 4,
    "persist": 3,
    "checkpoint": 2,
    "localCheckpoint": 2,
    **FILE_SINKS,
    "saveAsTable": 1,
    "bucketBy": 2,
    "bucketBy, partitioned": 1,
    "create table as select": 2,
    "insert into": 2,
    "insert overwrite": 1,
    "python udf": 1,
    "foreachBatch": 1,
}
PANDAS_SINKS = {"toPandas": 4, "mapInArrow": 1}
PYTHON_SINKS = ("python udf", "mapInArrow")

#: Rows that a limit above the result leaves.
LIMIT = 3

_FILES = ("parquet", "orc", "csv", "json", "text")
_TABLES = ("saveAsTable", "bucketBy", "delta", "iceberg")
_STATEMENTS = ("create table as select", "insert into", "insert overwrite")
#: Types whose values can be names of folders.
_FOLDERS = ("int", "bigint", "smallint", "tinyint", "date", "boolean")
_BUCKETS = (*_FOLDERS, "string")


class Sinks:
    """Runs queries to a sink and returns the rows that arrived."""

    def __init__(self, stock: SparkSession, home: Path) -> None:
        self._stock = stock
        self._home = home
        self._made = 0

    def run(self, sink: str, frame: DataFrame) -> tuple[Rows, DataFrame]:
        """The rows, and the DataFrame whose plan was run."""
        self._made += 1
        kind, _, by = sink.partition(", ")
        if kind in _FILES:
            return self._files(kind, bool(by), frame), frame
        if kind in _TABLES:
            return self._table(kind, bool(by), frame), frame
        if kind in _STATEMENTS:
            return self._sql(kind, frame), frame
        if kind == "persist":
            return self._persisted(frame)
        if kind == "limit":
            frame = frame.limit(LIMIT)
        if kind == "count":
            frame = frame.groupBy().count()
            return Counter({"rows": frame.collect()[0][0]}), frame
        if kind in PYTHON_SINKS:
            frame = _by_python(kind, frame)
        if kind in ("checkpoint", "localCheckpoint"):
            # The rows are those of the query; what is read is the checkpoint.
            kept = frame.checkpoint() if kind == "checkpoint" else frame.localCheckpoint()
            return _rows(kept.collect(), frame), frame
        ways: dict[str, Callable[[], Rows]] = {
            "toLocalIterator": lambda: _rows(list(frame.toLocalIterator()), frame),
            "rdd": lambda: _rows(frame.rdd.collect(), frame),
            "toPandas": lambda: _of_pandas(frame),
        }
        return ways.get(kind, lambda: _rows(frame.collect(), frame))(), frame

    def _files(self, kind: str, by: bool, frame: DataFrame) -> Rows:
        path = str(self._home / f"out-{self._made}")
        if kind == "csv" and not _is_flat(frame):
            kind = "json"
        if kind == "text":
            write_text(frame, path)
            return _rows(read_text(self._stock, path, _schema(frame)).collect(), frame)
        options = OPTIONS.get(kind, {})
        writer = frame.write.format(kind).options(**options)
        folder = _column(frame, _FOLDERS) if by and len(frame.columns) > 1 else None
        if folder:
            writer = writer.partitionBy(folder)
        writer.save(path)
        reader = self._stock.read.format(kind).options(**options).schema(_schema(frame))
        return _rows(reader.load(path).select(*frame.columns).collect(), frame)

    def _table(self, kind: str, by: bool, frame: DataFrame) -> Rows:
        name = f"ice.db.out_{self._made}" if kind == "iceberg" else f"out_{self._made}"
        folder = _column(frame, _FOLDERS) if by and len(frame.columns) > 1 else None
        if kind == "iceberg":
            creator = frame.writeTo(name).using("iceberg")
            if folder:
                creator = creator.partitionedBy(sf.col(folder))
            creator.create()
            return self._read(name, frame)
        writer = frame.write.format("delta" if kind == "delta" else "parquet")
        if folder:
            writer = writer.partitionBy(folder)
        bucket = _column(frame, _BUCKETS, but=folder) if kind == "bucketBy" else None
        if bucket:
            writer = writer.bucketBy(2, bucket).sortBy(bucket)
        writer.saveAsTable(name)
        return self._read(name, frame)

    def _sql(self, kind: str, frame: DataFrame) -> Rows:
        name, query = f"out_{self._made}", f"result_{self._made}"
        frame.createOrReplaceTempView(query)
        spark = frame.sparkSession
        create = f"CREATE TABLE {name} USING parquet AS SELECT * FROM {query}"
        spark.sql(create if kind.startswith("create") else f"{create} WHERE false")
        if kind.startswith("insert"):
            spark.sql(f"{kind.upper()} {name} SELECT * FROM {query}")
        spark.catalog.dropTempView(query)
        return self._read(name, frame)

    def _read(self, table: str, frame: DataFrame) -> Rows:
        rows = _rows(self._stock.table(table).select(*frame.columns).collect(), frame)
        self._stock.sql(f"DROP TABLE {table}")
        return rows

    def _persisted(self, frame: DataFrame) -> tuple[Rows, DataFrame]:
        """Rows of a result that is cached, read twice: once by filters over the cache."""
        frame.persist()
        try:
            kept = frame.select("*")
            rows = _rows(kept.collect(), frame)
            first = f"`{frame.columns[0]}`"
            parts = [kept.where(f"{first} IS {word}") for word in ("NULL", "NOT NULL")]
            again = _rows([row for part in parts for row in part.collect()], frame)
            same = rows == again
            return rows if same else Counter({"another answer by a filter": 1}) + again, kept
        finally:
            frame.unpersist()


def writes(sink: str) -> bool:
    """Whether Spark runs another query than that of the DataFrame, which a listener has seen."""
    return sink.split(", ")[0] in (*_FILES, *_TABLES, *_STATEMENTS)


def agree(sink: str, ours: Rows, expected: Rows) -> bool:
    """Whether the rows that arrived at a sink are those of a query that has these."""
    total = sum(expected.values())
    if sink == "count":
        return ours == Counter({"rows": total})
    if sink == "limit":
        return not ours - expected and sum(ours.values()) == min(LIMIT, total)
    if sink == "toPandas":
        return ours == _as_in_pandas(expected)
    if sink.startswith("orc"):
        # ORC's reader repeats the first zero of a batch of zeros, whatever the sign of the others.
        return _changed(ours, _without_sign) == _changed(expected, _without_sign)
    return ours == expected


def _without_sign(value: Any) -> Any:
    return 0.0 if value == "-0.0" else value


def _changed(rows: Rows, change: Callable[[Any], Any]) -> Rows:
    """The rows with each value changed."""
    found: Rows = Counter()
    for row, times in rows.items():
        found[tuple(map(change, row))] += times
    return found


def comparable(rows: Sequence[Any], names: Sequence[str]) -> Rows:
    """Rows as a multiset; NaN equals NaN, numbers are compared by value.

    But zeros of columns that nothing looks into, which keep their sign.
    """
    exact = [name.startswith("x") for name in names]
    return Counter(tuple(map(_value, row, exact)) for row in rows)


def _rows(rows: Sequence[Any], frame: DataFrame) -> Rows:
    return comparable(rows, frame.columns)


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


def _of_pandas(frame: DataFrame) -> Rows:
    found: Any = frame.toPandas()
    columns = [[_from_pandas(value) for value in found[name]] for name in frame.columns]
    return _as_in_pandas(comparable(list(zip(*columns)), frame.columns))


def _from_pandas(value: Any) -> Any:
    if hasattr(value, "to_pydatetime"):
        return None if value != value else value.to_pydatetime()
    if hasattr(value, "tolist"):
        value = value.tolist()
    return [_from_pandas(each) for each in value] if isinstance(value, list) else value


def _as_in_pandas(rows: Rows) -> Rows:
    """What pandas makes of rows: numbers are floats where there are nulls, which are NaN."""
    return _changed(rows, _loosely)


def _loosely(value: Any) -> Any:
    if value is None or value == "NaN":
        return None
    if isinstance(value, (tuple, frozenset)):
        return type(value)(map(_loosely, value))
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        return value
    return float(value)


def _by_python(kind: str, frame: DataFrame) -> DataFrame:
    """The same rows after a worker has had them."""
    if kind == "mapInArrow":
        same: Callable[..., DataFrame] = frame.mapInArrow
        return same(_unchanged, frame.schema)
    name = _column(frame, ("int", "bigint", "string"))
    if name is None:
        return frame
    udf = sf.udf(_same, dict(frame.dtypes)[name])
    return frame.select(*(udf(c).alias(c) if c == name else c for c in frame.columns))


def _same(value: Any) -> Any:
    return value


def _unchanged(batches: Any) -> Any:
    yield from batches


def _schema(frame: DataFrame) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in frame.dtypes)


def _is_flat(frame: DataFrame) -> bool:
    return not any(
        kind == "binary" or kind.startswith(("array", "struct", "map")) for _, kind in frame.dtypes
    )


def _column(frame: DataFrame, kinds: Sequence[str], but: str | None = None) -> str | None:
    return next((name for name, kind in frame.dtypes if kind in kinds and name != but), None)
