"""The one way to a session: to a JVM in this process, or to a Spark Connect server.

The public functions check their arguments and call the engine of their session. Only this module
chooses the engine.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Union

from pyspark_skewext import _jvm
from pyspark_skewext._engine.classic import ClassicEngine
from pyspark_skewext._engine.connect import ConnectEngine
from pyspark_skewext._errors import runtime_error

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Both have the same methods, which mypy checks at each call.
Engine = Union[ClassicEngine, ConnectEngine]


def engine_of(spark: SparkSession) -> Engine:
    """The engine of a session."""
    return ConnectEngine(spark) if _jvm.is_connect(spark) else ClassicEngine(spark)


def active_engine() -> Engine:
    """The engine of the active session."""
    connect = sys.modules.get("pyspark.sql.connect.session")
    server = None if connect is None else connect.SparkSession.getActiveSession()
    if server is not None:
        return ConnectEngine(server)
    from pyspark.sql import SparkSession

    spark = SparkSession.getActiveSession()
    if spark is None:
        raise runtime_error(
            "There is no active SparkSession: start one with pyspark_skewext.configure(builder)."
        )
    return ClassicEngine(spark)
