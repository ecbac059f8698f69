"""The one way to a session: to a JVM in this process, or to a Spark Connect server.

The public functions check their arguments and call the engine of their session. Only this module
chooses the engine.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Union

from pyspark_skewext import _jvm
from pyspark_skewext._engine.classic import ClassicEngine
from pyspark_skewext._engine.connect import ConnectEngine
from pyspark_skewext._errors import runtime_error, type_error

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Both have the same methods, which mypy checks at each call.
Engine = Union[ClassicEngine, ConnectEngine]


def engine_of(spark: SparkSession) -> Engine:
    """The engine of a session."""
    if not _jvm.is_connect(spark):
        return ClassicEngine(spark)
    if not _jvm.is_a(spark, "SparkSession"):
        raise type_error(f"Expected a SparkSession, not {type(spark).__name__}.")
    return ConnectEngine(spark)


def active_engine() -> Engine:
    """The engine of the active session; in a thread without one, of the default session."""
    from pyspark.sql import SparkSession

    connect: Any = sys.modules.get("pyspark.sql.connect.session")
    server = None if connect is None else connect.SparkSession
    spark = (server and server.getActiveSession()) or SparkSession.getActiveSession()
    if spark is None:
        spark = (server and server._default_session) or SparkSession._instantiatedSession
    if spark is None:
        raise runtime_error(
            "There is no active SparkSession: start one with pyspark_skewext.configure(builder)."
        )
    return engine_of(spark)
