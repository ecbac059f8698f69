"""A Spark Connect server: calls of a table function of its extension."""

from __future__ import annotations

import os
from collections.abc import Sequence
from operator import add
from typing import TYPE_CHECKING, Any
from uuid import uuid4
from weakref import WeakKeyDictionary

from pyspark_skewext._engine.request import (
    LARGEST_SHARE,
    LEAST_SHARE,
    Request,
    counted,
    figures_of,
    names_of,
    nothing_active,
)
from pyspark_skewext._errors import first_line, runtime_error, type_error, value_error
from pyspark_skewext._jvm import EXTENSION, is_connect
from pyspark_skewext._version import __version__
from pyspark_skewext._watch import Progress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# How a server says that it does not know a function.
_NO_FUNCTION = ("UNRESOLVABLE_TABLE_VALUED_FUNCTION", "UNRESOLVED_ROUTINE")

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

    def run(self, request: Request, progress: Progress | None = None) -> DataFrame:
        """Call a function, by a table function with the request and its tables."""
        if progress is not None:
            raise value_error("A Spark Connect server reports no progress: leave progress out.")
        self._require_extension(request.function)
        text, tables = request.sent()
        frames: dict[str, Any] = {f"t{n}": df for n, df in enumerate(tables)}
        # In hexadecimal nothing depends on how the server reads strings.
        arguments = [*(f"TABLE({{{name}}})" for name in frames), f"X'{text.encode().hex()}'"]
        query = f"SELECT * FROM skewext_request({', '.join(arguments)})"
        if not is_old_client():
            return _observed(self._spark.sql(query, **frames), tables)
        # The result needs these views as long as the session runs.
        views = {name: f"skewext_{uuid4().hex}" for name in frames}
        for name, df in frames.items():
            df.createTempView(views[name])
        return self._spark.sql(query.format(**views))

    def hot_keys(self, left: DataFrame, right: DataFrame, on: Any) -> list[tuple[Any, ...]] | None:
        """The keys with more rows than a partition has on average; runs two jobs."""
        self._require_extension("skew_join")
        if not self._is_switched_on():
            return None
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
        report = self.run(Request("skew_report", [left, right], keys=[names] * 2, min_share=share))
        # Python has a time without its zone, and it may be ambiguous or out of range.
        figures, hot_rows = counted(report, times_as_text=True)
        average = 1 / figures["shuffle_partitions"]
        least = average * sum(each["rows"] for each in figures["inputs"])
        return [
            tuple(key) for key, _, low, high in hot_rows if max(map(add, low, high)) / 2 > least
        ]

    def explain(self, df: DataFrame) -> dict[str, Any]:
        """Explain the joins of a query, which the server plans once more."""
        return figures_of(self.run(Request("explain", [df])))

    def doctor(self) -> dict[str, Any]:
        """Ask the server which parts are active."""
        version = str(self._spark.version)
        try:
            if self._has_extension():
                return figures_of(self.run(Request("doctor", [])))
            reason = (
                "the Spark Connect server has no skewext: start it with the skewext jar and "
                f"spark.sql.extensions={EXTENSION}"
            )
        except Exception as error:
            reason = first_line(error)
        return nothing_active(version, reason)

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
        return figures_of(self.run(Request("query_report", [], query=query)))

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


def _observed(result: Any, inputs: Sequence[Any]) -> DataFrame:
    """The result, which passes on the observations of its inputs, as Spark's own joins do.

    Spark's plan of an SQL query has none, and no public function adds them to it.
    """
    from pyspark.sql.connect.plan import LogicalPlan

    found = {name: seen for df in inputs for name, seen in df._plan.observations.items()}
    query = result._plan

    class Observed(LogicalPlan):
        def __init__(self) -> None:
            super().__init__(query)

        @property
        def _plan_id(self) -> Any:
            """The id that columns of the result refer to."""
            return query._plan_id

        @_plan_id.setter
        def _plan_id(self, own: Any) -> None:
            """PySpark 3.5 sets an id in the constructor; later lines have a property."""

        def plan(self, session: Any) -> Any:
            return query.plan(session)

        @property
        def observations(self) -> dict[str, Any]:
            return found

    observed: DataFrame = type(result)(Observed(), result.sparkSession) if found else result
    return observed
