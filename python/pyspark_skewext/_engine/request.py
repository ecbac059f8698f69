"""The one form of a call for both engines: a function, its arguments as JSON, its tables."""

from __future__ import annotations

import datetime
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pyspark_skewext._errors import analysis_error, first_line, type_error, value_error

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


@dataclass(frozen=True, eq=False)
class Computed:
    """A Column that is computed from the table at a position."""

    table: int
    column: Column


class Request:
    """A call of a function.

    The arguments have the names of those of the SQL function (docs/sql.md), in forms of JSON.
    Constants of other types are texts, see :func:`constant`, and Columns are :class:`Computed`.
    `inputs` are the DataFrames of the user, if the tables are made of them.
    """

    def __init__(
        self,
        function: str,
        tables: Sequence[DataFrame],
        *,
        inputs: Sequence[DataFrame] | None = None,
        **arguments: Any,
    ) -> None:
        self.function = function
        self.inputs = inputs or tables
        self._tables = tables
        self._arguments = arguments

    def sent(self) -> tuple[str, list[DataFrame]]:
        """The request as JSON, and its tables.

        JSON has no Columns, so the tables select them, and the JSON has their places. The JVM finds
        them in the analyzed plans, whatever client has sent these.
        """
        columns: list[list[Column]] = [[] for _ in self._tables]

        def place(computed: Computed) -> dict[str, list[int]]:
            columns[computed.table].append(computed.column)
            return {"column": [computed.table, len(columns[computed.table]) - 1]}

        arguments = json.dumps(self._arguments, default=place)
        tables = [
            _with_columns(position, df, added)
            for position, (df, added) in enumerate(zip(self._tables, columns))
        ]
        head = json.dumps({"function": self.function, "columns": list(map(len, columns))})
        return f'{head[:-1]}, "arguments": {arguments}}}', tables


def _with_columns(position: int, df: DataFrame, columns: Sequence[Column]) -> DataFrame:
    from pyspark.errors import AnalysisException

    if not columns:
        return df
    problem = f"A Column is not computed from the columns of input {position} (counting from 0)"
    try:
        selected = df.select("*", *columns)
        added = len(selected.columns) - len(df.columns)
    except AnalysisException as error:
        raise analysis_error(f"{problem}: {first_line(error)}") from None
    if added != len(columns):
        raise analysis_error(f"{problem}: it stands for several.")
    return selected


#: The bounds of `min_share`. A smaller share needs a sketch that is too large for a task.
LEAST_SHARE, LARGEST_SHARE = 0.00001, 0.5


def plain(value: Any) -> Any:
    """A number or bool of numpy as one of Python."""
    # None has it if nothing has imported numpy.
    numpy: Any = sys.modules.get("numpy")
    return value.item() if numpy and isinstance(value, (numpy.number, numpy.bool_)) else value


def identifier(name: str) -> str:
    """The name of a column as SQL writes it."""
    return "`" + name.replace("`", "``") + "`"


def names_of(on: Any) -> list[str] | None:
    """The names of key columns; None for a condition."""
    names = [on] if isinstance(on, str) else on
    by_name = isinstance(names, Sequence) and all(isinstance(name, str) for name in names)
    return list(names) if by_name else None


def orders(table: int, given: Sequence[Any] | None) -> list[Any] | None:
    """Names and Columns to order a table by."""
    if given is None:
        return None
    return [{"name": each} if isinstance(each, str) else Computed(table, each) for each in given]


def _fits(number: int | Decimal) -> bool:
    """Whether a decimal of SQL can hold the number."""
    exact = Decimal(number)
    if not exact.is_finite():
        return False
    _, digits, exponent = exact.as_tuple()
    assert isinstance(exponent, int)
    return len(digits) + max(exponent, 0) <= 38 and exponent >= -38


def constant(value: Any) -> str:
    """A constant as SQL writes it: lists become arrays, tuples structs, and dictionaries maps."""
    value = plain(value)
    if value is None:
        return "NULL"
    if isinstance(value, (int, Decimal)) and not _fits(value):
        raise value_error(f"{value} is no number of SQL, which have at most 38 digits.")
    if isinstance(value, (bool, int)):
        return str(value).lower()
    if isinstance(value, float):
        return f"double('{value}')"
    if isinstance(value, str):
        # spark.sql.parser.escapedStringLiterals changes how a backslash is read, and Spark puts the
        # values of variables such as ${a} into a statement.
        is_plain = not set(value) & {"\\", "'", "$"}
        return f"'{value}'" if is_plain else f"string(X'{value.encode().hex()}')"
    if isinstance(value, Decimal):
        return f"{value:f}BD"
    if isinstance(value, datetime.datetime):
        return f"timestamp_micros({_micros(value)})"
    if isinstance(value, datetime.date):
        return f"DATE'{value.isoformat()}'"
    if isinstance(value, datetime.time):
        return f"TIME'{value.replace(tzinfo=None).isoformat()}'"
    if isinstance(value, datetime.timedelta):
        seconds = f"{value.seconds}.{value.microseconds:06}BD"
        return f"make_dt_interval({value.days}, 0, 0, {seconds})"
    if isinstance(value, (bytes, bytearray)):
        return f"X'{value.hex()}'"
    if isinstance(value, dict):
        pairs = [text for pair in value.items() for text in map(constant, pair)]
        return f"map({', '.join(pairs)})"
    if isinstance(value, (list, tuple)):
        kind = "array" if isinstance(value, list) else "struct"
        return f"{kind}({', '.join(map(constant, value))})"
    raise type_error(f"A value of type {type(value).__name__} is no constant of SQL.")


def _micros(value: datetime.datetime) -> int:
    """Microseconds since 1970. As lit() has it, a time without a zone is local."""
    offset = value.utcoffset()
    if offset is None:
        return int(time.mktime(value.timetuple())) * 1_000_000 + value.microsecond
    # In UTC it may be before the year 1, or after 9999.
    since = value.replace(tzinfo=None) - datetime.datetime(1970, 1, 1) - offset
    return since // datetime.timedelta(microseconds=1)


def figures_of(result: DataFrame) -> dict[str, Any]:
    """The figures in the only row of a result, which is JSON."""
    found: dict[str, Any] = json.loads(result.collect()[0][0])
    return found


def nothing_active(spark: str, reason: str) -> dict[str, Any]:
    """The figures of ``doctor`` without a JVM that lists the parts."""
    parts = [{"name": "all parts", "active": False, "reason": reason}]
    return {"spark": spark, "parts": parts, "notes": []}


def counted(
    found: DataFrame, times_as_text: bool = False
) -> tuple[dict[str, Any], Sequence[tuple[Any, ...]]]:
    """Fetch the figures, and the hot keys: values, partition, least and most rows of each input.

    Values are text if Python has no type for one, such as a date before 1.
    """
    from pyspark.sql.types import StringType, StructType, TimestampNTZType, TimestampType

    def with_texts(*kinds: type) -> DataFrame:
        key: Any = found.schema["key"].dataType
        texts = StructType()
        for position, field in enumerate(key):
            is_text = isinstance(field.dataType, kinds)
            texts.add(f"k{position}", StringType() if is_text else field.dataType)
        return found.withColumn("key", found["key"].cast(texts))

    try:
        shown = with_texts(TimestampType, TimestampNTZType) if times_as_text else found
        rows = shown.collect()
    except (ValueError, OverflowError, TypeError, NotImplementedError):
        # PySpark raises these for values without a type.
        rows = with_texts(object).collect()
    # One row has the figures. Each other row has a key.
    figures = json.loads(next(row[4] for row in rows if row[4] is not None))
    return figures, [row[:4] for row in rows if row[4] is None]
