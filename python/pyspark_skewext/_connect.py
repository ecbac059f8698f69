"""The way to a Spark Connect server: table functions, which it has where it loads the extension."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union
from uuid import uuid4
from weakref import WeakKeyDictionary

from pyspark_skewext._errors import runtime_error
from pyspark_skewext._jvm import EXTENSION
from pyspark_skewext._version import __version__

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: What an argument of a table function may be here.
Constant = Union[
    None, bool, int, float, str, Sequence[Union[str, None]], Sequence[Sequence[Union[str, None]]]
]

# How a server says that it does not have one.
_NO_FUNCTION = ("UNRESOLVABLE_TABLE_VALUED_FUNCTION", "UNRESOLVED_ROUTINE")

# The version of the server's jar, empty where it has none. Asked once in a session.
_versions: WeakKeyDictionary[SparkSession, str] = WeakKeyDictionary()


def is_old_client() -> bool:
    """Tell whether this is Spark 3.5, whose client cannot hand tables to a function."""
    import pyspark

    return pyspark.__version__.startswith("3.")


def has_extension(spark: SparkSession) -> bool:
    """Tell whether the server has the extension; refuse one of another version."""
    if spark not in _versions:
        _versions[spark] = _version_of(spark)
    version = _versions[spark]
    if version and version != __version__:
        raise runtime_error(
            f"The skewext jar of the Spark Connect server has version {version} but "
            f"pyspark_skewext has version {__version__}: use the same version of both."
        )
    return bool(version)


def _version_of(spark: SparkSession) -> str:
    from pyspark.errors import AnalysisException

    try:
        return str(spark.sql("SELECT version FROM skewext_version()").collect()[0][0])
    except AnalysisException as missing:
        if any(name in str(missing) for name in _NO_FUNCTION):
            return ""
        raise


def require_extension(spark: SparkSession, what: str) -> None:
    """Say what the server needs, where it has not got it."""
    if not has_extension(spark):
        raise runtime_error(
            f"The Spark Connect server has no skewext, which {what} needs: start it with the "
            f"skewext jar and spark.sql.extensions={EXTENSION}."
        )


def call(
    spark: SparkSession,
    function: str,
    tables: Sequence[DataFrame] = (),
    arguments: Mapping[str, Constant] | None = None,
) -> DataFrame:
    """Call a table function of the server."""
    frames: dict[str, Any] = {f"t{position}": df for position, df in enumerate(tables)}
    texts = [f"TABLE({{{name}}})" for name in frames]
    for name, value in (arguments or {}).items():
        # Braces are for the names of DataFrames.
        text = _sql(value).replace("{", "{{").replace("}", "}}")
        texts.append(f"{name} => {text}")
    text = f"SELECT * FROM {function}({', '.join(texts)})"
    if is_old_client():
        return spark.sql(text.format(**{name: _view(df) for name, df in frames.items()}))
    return spark.sql(text, **frames)


def _view(df: DataFrame) -> str:
    """A name for the DataFrame, for as long as the session is: what is made of it goes by it."""
    name = f"skewext_{uuid4().hex}"
    df.createTempView(name)
    return name


def _sql(value: Constant) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, (bool, int, float)):
        return repr(value).lower()
    if isinstance(value, str):
        quoted = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{quoted}'"
    return f"array({', '.join(map(_sql, value))})"
