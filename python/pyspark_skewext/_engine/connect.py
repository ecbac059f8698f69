"""A Spark Connect server: calls of the table functions of its extension."""

from __future__ import annotations

import datetime
import json
import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from operator import add
from typing import TYPE_CHECKING, Any
from uuid import uuid4
from weakref import WeakKeyDictionary

from pyspark_skewext._engine.calls import (
    LARGEST_SHARE,
    LEAST_SHARE,
    AsOfJoin,
    BucketedWrite,
    Interval,
    KeyCount,
    LatestRows,
    MultiJoin,
    SkewJoin,
    counted,
    frames_of,
    identifier,
    names_of,
    nothing_active,
    plain,
)
from pyspark_skewext._errors import first_line, runtime_error, type_error, value_error
from pyspark_skewext._jvm import EXTENSION, is_connect
from pyspark_skewext._version import __version__

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# How a server says that it does not know a function.
_NO_FUNCTION = ("UNRESOLVABLE_TABLE_VALUED_FUNCTION", "UNRESOLVED_ROUTINE")

# A part of a column's name, as Spark reads it.
_PART = r"(?:`(?:[^`]|``)+`|[^`.]+)"

# The least share of a key's rows where the number of partitions is known only afterwards.
_AUTO_SHARE = 0.001

# The version of each server's jar; empty without one.
_versions: WeakKeyDictionary[SparkSession, str] = WeakKeyDictionary()


def is_old_client() -> bool:
    """Tell whether this is Spark 3.5, whose client cannot pass tables to a function."""
    import pyspark

    return pyspark.__version__.startswith("3.")


def is_remote(builder: object, options: object) -> bool:
    """Tell whether a builder connects to a running server; PySpark 4 itself starts a local one."""
    if is_connect(builder) or not isinstance(options, dict):
        return is_connect(builder)
    import pyspark.util

    # pyspark-client starts no server. Spark 3.5 lacks the function.
    if getattr(pyspark.util, "is_remote_only", bool)():
        return True
    remote = options.get("spark.remote", os.environ.get("SPARK_REMOTE"))
    return remote is not None and (is_old_client() or not str(remote).startswith("local"))


class ConnectEngine:
    """The engine of a Spark Connect session, which needs the extension on the server."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    @property
    def home(self) -> str:
        """The session on the server, which the inputs of a join must share."""
        return str(getattr(self._spark, "session_id", id(self._spark)))

    def multi_join(self, call: MultiJoin) -> DataFrame:
        """Join with one operator, by a table function."""
        return self._call("multi_join", call._asdict())

    def skew_join(self, call: SkewJoin) -> DataFrame:
        """Join two sides by a technique, by a table function over Spark's join."""
        self._require_extension("skew_join")
        hot_keys, on = call.hot_keys, call.on
        if call.technique == "salted" and hot_keys is None and self._is_switched_on():
            hot_keys = self._frequent_keys(call.left, call.right, on)
        several = isinstance(on, Sequence) and not isinstance(on, str)
        joined = call.left.join(call.right, list(on) if several else on, call.how)
        # A tuple is a STRUCT: one of all key columns, or the value of one column.
        keys = hot_keys and [
            key[0] if len(key) == 1 and not isinstance(key[0], tuple) else key for key in hot_keys
        ]
        arguments = {"technique": call.technique, "hot_keys": keys, **call.options}
        return self._call("skew_join", {"joined": joined, **arguments})

    def asof_join(self, call: AsOfJoin) -> DataFrame:
        """Join tables of versions as of a time, by a table function."""
        ties = [_orders(each) for each in call.ties]
        changed = {"tolerances": tuple(call.tolerances), "ties": ties if any(ties) else None}
        return self._call("asof_join", {**call._asdict(), **changed})

    def latest(self, call: LatestRows) -> DataFrame:
        """The newest rows, by a table function."""
        given = call._replace(by=_orders(call.by) or [], ties=_orders(call.ties))
        return self._call("latest", given._asdict())

    def explain(self, df: DataFrame) -> dict[str, Any]:
        """Explain the joins of a query, which the server plans once more."""
        return self._json("explain", {"df": df})

    def doctor(self) -> dict[str, Any]:
        """Ask the server which parts are active."""
        version = str(self._spark.version)
        try:
            if self._has_extension():
                return self._json("doctor", {})
            reason = (
                "the Spark Connect server has no skewext: start it with the skewext jar and "
                f"spark.sql.extensions={EXTENSION}"
            )
        except Exception as error:
            reason = first_line(error)
        return nothing_active(version, reason)

    def skew_report(self, call: KeyCount) -> tuple[dict[str, Any], Sequence[tuple[Any, ...]]]:
        """Count the keys: the figures, and the hot keys with their counts."""
        if call.progress is not None:
            raise value_error("A Spark Connect server reports no progress: leave progress out.")
        return counted(self._key_counts(call))

    def _key_counts(self, call: KeyCount) -> DataFrame:
        arguments = call._asdict()
        del arguments["progress"]
        return self._call("skew_report", arguments)

    def query_report(
        self, query: DataFrame | int | None, event_log: str | None, progress: object
    ) -> dict[str, Any]:
        """Report on a query of the server."""
        if event_log is not None:
            raise value_error("A Spark Connect server reads no event log for its clients.")
        if query is not None and not isinstance(query, int):
            raise type_error(
                "The server runs the query of a Spark Connect DataFrame: give the number of the "
                "query in Spark's UI, or nothing for the last query with a join."
            )
        return self._json("query_report", {"query": query})

    def write_bucketed(self, call: BucketedWrite) -> dict[str, Any]:
        """Write a bucketed table on the server, and count the rows of its buckets."""
        return self._json("write_bucketed", call._asdict())

    def register(self) -> None:
        """Refuse: only the server can load the extension."""
        raise type_error(
            "This is a Spark Connect session, which has no JVM of its own: start the server with "
            f"the skewext jar and spark.sql.extensions={EXTENSION}."
        )

    def is_enabled(self) -> bool:
        """Tell whether the extension is on the server and switched on."""
        return self._is_switched_on() and bool(self._version())

    def _is_switched_on(self) -> bool:
        return str(self._spark.conf.get("spark.skewext.enabled", "true")).lower() == "true"

    def _version(self) -> str:
        from pyspark.errors import AnalysisException

        if self._spark not in _versions:
            version = ""
            try:
                found = self._spark.sql("SELECT version FROM skewext_version()").collect()
                version = str(found[0][0])
            except AnalysisException as missing:
                if not any(name in str(missing) for name in _NO_FUNCTION):
                    raise
            _versions[self._spark] = version
        return _versions[self._spark]

    def _has_extension(self) -> bool:
        version = self._version()
        if version not in ("", __version__):
            raise runtime_error(
                f"The skewext jar of the Spark Connect server has version {version} but "
                f"pyspark_skewext has version {__version__}: use the same version of both."
            )
        return bool(version)

    def _require_extension(self, function: str) -> None:
        if not self._has_extension():
            raise runtime_error(
                f"The Spark Connect server has no skewext, which {function} needs: start the "
                f"server with the skewext jar and spark.sql.extensions={EXTENSION}."
            )

    def _json(self, function: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Call a table function that returns one text of JSON."""
        found: dict[str, Any] = json.loads(self._call(function, arguments).collect()[0][0])
        return found

    def _call(self, function: str, arguments: Mapping[str, Any]) -> DataFrame:
        """Call a table function of the server: its tables by position, the rest by name."""
        self._require_extension(function)
        frames: dict[str, Any] = {f"t{n}": df for n, df in enumerate(frames_of(arguments.values()))}
        texts = [f"TABLE({{{name}}})" for name in frames]
        for name, value in arguments.items():
            if not frames_of([value]):
                # Braces are for the names of DataFrames.
                text = _sql(value).replace("{", "{{").replace("}", "}}")
                texts.append(f"{name} => {text}")
        query = f"SELECT * FROM skewext_{function}({', '.join(texts)})"
        if not is_old_client():
            return _observed(self._spark.sql(query, **frames), frames.values())
        # The result needs these views as long as the session runs.
        views = {name: f"skewext_{uuid4().hex}" for name in frames}
        for name, df in frames.items():
            df.createTempView(views[name])
        return self._spark.sql(query.format(**views))

    def _frequent_keys(self, left: DataFrame, right: DataFrame, on: Any) -> list[tuple[Any, ...]]:
        """The keys with more rows than a partition has on average; runs two jobs."""
        names = names_of(on)
        if names is None:
            raise value_error(
                "With Spark Connect, salted needs hot_keys where on is a condition. "
                "skew_report finds them."
            )
        partitions = str(self._spark.conf.get("spark.sql.shuffle.partitions"))
        # Databricks has the value auto.
        average = 1 / int(partitions) if partitions.isdecimal() else _AUTO_SHARE
        share = min(max(average, LEAST_SHARE), LARGEST_SHARE)
        count = KeyCount([left, right], [names] * 2, None, share, False, None)
        # Python has a time without its zone, and it may be ambiguous or out of range.
        figures, hot_rows = counted(self._key_counts(count), times_as_text=True)
        average = 1 / figures["shuffle_partitions"]
        least = average * sum(each["rows"] for each in figures["inputs"])
        return [
            tuple(key) for key, _, low, high in hot_rows if max(map(add, low, high)) / 2 > least
        ]


def _orders(given: Sequence[Any] | None) -> list[str] | None:
    """Names and Columns as the text of an order; a server reads no other Column in it."""
    return None if given is None else [_order(each) for each in given]


def _order(given: Any) -> str:
    if isinstance(given, str):
        return identifier(given)
    ordered = given._expr
    column = ordered._child if type(ordered).__name__ == "SortOrder" else ordered
    name = str(column)
    is_column = type(column).__name__ == "ColumnReference"
    if not (is_column and re.fullmatch(rf"{_PART}(\.{_PART})*", name)):
        raise type_error(
            "With Spark Connect, an order is the name of a column, or a Column like "
            f'sf.desc("name"), not {given}.'
        )
    parts = [
        identifier(part[1:-1].replace("``", "`") if part.startswith("`") else part)
        for part in re.findall(_PART, name)
    ]
    return ".".join(parts) + str(ordered)[len(name) :]


def _micros(value: datetime.datetime) -> int:
    """Microseconds since 1970. As lit() has it, a time without a zone is local."""
    offset = value.utcoffset()
    if offset is None:
        return int(time.mktime(value.timetuple())) * 1_000_000 + value.microsecond
    # In UTC it may be before the year 1, or after 9999.
    since = value.replace(tzinfo=None) - datetime.datetime(1970, 1, 1) - offset
    return since // datetime.timedelta(microseconds=1)


def _observed(result: DataFrame, inputs: Iterable[Any]) -> DataFrame:
    """The result, which passes on the observations of its inputs, as Spark's own joins do."""
    found = {name: o for df in inputs for name, o in df._plan.observations.items()}
    plan: Any = result._plan
    if found:
        made = {"observations": property(lambda _: found)}
        plan.__class__ = type(type(plan).__name__, (type(plan),), made)
    return result


def _sql(value: Any) -> str:
    """A constant of SQL: lists become arrays, tuples structs, and dictionaries maps."""
    value = plain(value)
    if value is None:
        return "NULL"
    if isinstance(value, (bool, int)):
        return str(value).lower()
    if isinstance(value, float):
        return f"double('{value}')"
    if isinstance(value, str):
        # spark.sql.parser.escapedStringLiterals changes how a backslash is read, and Spark puts the
        # values of variables such as ${a} into a statement.
        is_plain = not set(value) & {"\\", "'", "$"}
        return f"'{value}'" if is_plain else f"string(X'{value.encode().hex()}')"
    if isinstance(value, Interval):
        return value.sql()
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
        pairs = [text for pair in value.items() for text in map(_sql, pair)]
        return f"map({', '.join(pairs)})"
    if isinstance(value, (list, tuple)):
        kind = "array" if isinstance(value, list) else "struct"
        return f"{kind}({', '.join(map(_sql, value))})"
    raise type_error(
        f"A value of type {type(value).__name__} cannot be sent to a Spark Connect server."
    )
