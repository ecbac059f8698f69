"""Joins of two DataFrames by a technique against skew."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any, Literal, Union

from pyspark_skewext import _connect
from pyspark_skewext._errors import type_error, value_error
from pyspark_skewext._hint import hinted, plainly_joined
from pyspark_skewext._jvm import EXTENSION, api_of, is_connect, java_list, java_map
from pyspark_skewext._validate import checked_sides
from pyspark_skewext.results.skew import HotKey

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

#: What `on` may be, as for DataFrame.join.
On = Union[str, Sequence[str], "Column", Sequence["Column"]]

_HOWS = (
    *("inner", "full", "outer", "fullouter", "full_outer", "left", "leftouter", "left_outer"),
    *("right", "rightouter", "right_outer", "semi", "leftsemi", "left_semi"),
    *("anti", "leftanti", "left_anti"),
)


def skew_join(
    left: DataFrame,
    right: DataFrame,
    on: On,
    how: str = "inner",
    technique: str = "auto",
    *,
    hot_keys: Sequence[Any] | None = None,
    salts: int | None = None,
    side: Literal["left", "right", "both"] | None = None,
    chunks: int | None = None,
    passes: int | None = None,
    factor: float | None = None,
    threshold: str | int | None = None,
    slice_bytes: str | int | None = None,
    max_slices: int | None = None,
    max_reread_factor: float | None = None,
    min_gain: float | None = None,
) -> DataFrame:
    """Join two DataFrames by a technique that copes with keys that have very many rows.

    The rows and columns are those of ``left.join(right, on, how)``, whatever the technique.

    Parameters
    ----------
    left, right : DataFrame
        The sides of the join.
    on : str or list of str or Column or list of Column
        Names of columns that both sides have, or a condition, as for ``DataFrame.join``. Of a list
        of conditions all must hold.
    how : str, default "inner"
        Any kind of join that ``DataFrame.join`` knows, but "cross".
    technique : str, default "auto"
        ``"auto"`` chooses one by what Spark knows of the sides. ``"none"`` is Spark's own join,
        ``"adaptive"`` one whose skewed partitions are split when their sizes are known.
        ``"broadcast"`` sends one side to all executors; ``"broadcast_map"`` does so for every kind
        of join, full outer joins too, and ``"iterative_broadcast"`` in chunks. ``"salted"``
        divides the rows of hot keys. The documentation has a table of all techniques.
    hot_keys : list, optional
        Keys with many rows, for auto and salted: a value each, a tuple of values where the key has
        several columns, or what ``skew_report(...).hot_keys`` has.
    salts : int, optional
        In how many parts salted divides the rows of a hot key.
    side : {"left", "right", "both"}, optional
        Which side is broadcast by broadcast, broadcast_map and iterative_broadcast, or divided by
        salted, which alone knows "both".
    chunks, passes : int, optional
        Of iterative_broadcast: in how many chunks, and how often the large side is read.
    factor, threshold, slice_bytes, max_slices, max_reread_factor, min_gain : optional
        Of adaptive, in place of the session's settings. Sizes are bytes, or text like ``"64m"``.

    Returns
    -------
    DataFrame
        What ``left.join(right, on, how)`` returns.

    Raises
    ------
    AnalysisException
        If a side lacks a key column, the technique cannot do the join, or an option is wrong.
    PySparkTypeError, PySparkValueError
        If an argument is not what it should be.
    PySparkRuntimeError
        If the session does not have the extension.

    See Also
    --------
    skew_report : which keys are hot.
    explain : what was chosen, and why.

    Notes
    -----
    The same by a hint, in SQL ``/*+ SKEW_JOIN(t, broadcast_map) */``, or on a DataFrame
    ``df.hint("skew_join", "broadcast_map")``. A hint that is wrong is left out with a warning.

    With Spark Connect the join is one with that hint, and the server is asked whether it took it.
    If it does not have the extension, it is Spark's own join, and a warning says so.

    Examples
    --------
    >>> visits = spark.createDataFrame([(1, "a"), (1, "b"), (1, "c"), (2, "d")], ["user", "page"])
    >>> users = spark.createDataFrame([(1, "ann"), (3, "eve")], ["user", "name"])
    >>> joined = skewext.skew_join(visits, users, "user", "full", technique="salted", hot_keys=[1])
    >>> joined.orderBy("user", "page").show()
    +----+----+----+
    |user|page|name|
    +----+----+----+
    |   1|   a| ann|
    |   1|   b| ann|
    |   1|   c| ann|
    |   2|   d|NULL|
    |   3|NULL| eve|
    +----+----+----+
    <BLANKLINE>
    """
    spark = checked_sides(left, right, on).sparkSession
    _check_how(how)
    if not isinstance(technique, str):
        raise type_error(f"technique must be a name, not {type(technique).__name__}.")
    options = {
        "salts": salts,
        "side": side,
        "chunks": chunks,
        "passes": passes,
        "factor": factor,
        "threshold": threshold,
        "slice_bytes": slice_bytes,
        "max_slices": max_slices,
        "max_reread_factor": max_reread_factor,
        "min_gain": min_gain,
    }
    texts = _texts(options)
    keys = None if hot_keys is None else _key_values(hot_keys)
    if is_connect(spark):
        if _connect.has_extension(spark):
            return hinted(left, right, on, how, technique.lower(), texts, keys)
        warnings.warn(
            "The Spark Connect server has no skewext: this is Spark's own join, with the same "
            "rows. To have it by a technique, start the server with the skewext jar and "
            f"spark.sql.extensions={EXTENSION}.",
            stacklevel=2,
        )
        return plainly_joined(left, right, on, how)
    api = api_of(spark, right.sparkSession)
    known = [str(name) for name in api.techniques()]
    if technique.lower() not in known:
        raise value_error(f"There is no technique {technique!r}; there are {', '.join(known)}.")
    jvm: Any = spark._jvm
    joined = api.skewJoin(
        left._jdf,
        right._jdf,
        _java_on(jvm, on),
        how,
        technique,
        java_map(jvm, texts),
        None if keys is None else _literals(spark, keys),
    )
    from pyspark.sql import DataFrame

    return DataFrame(joined, spark)


def _check_how(how: object) -> None:
    if not isinstance(how, str):
        raise type_error(f"how must be the name of a kind of join, not {type(how).__name__}.")
    name = how.lower()
    if name == "cross":
        raise value_error("how must not be 'cross': a cross join has no key that could be skewed.")
    if name in ("right_semi", "right_anti", "rightsemi", "rightanti"):
        raise value_error(f"how must not be {how!r}: swap the sides and take left_{name[-4:]}.")
    if name not in _HOWS:
        raise value_error(f"how must be one of {', '.join(_HOWS)}, not {how!r}.")


def _java_on(jvm: Any, on: Any) -> Any:
    from pyspark.sql import Column

    columns: list[Any] = [on] if isinstance(on, (str, Column)) else list(on)
    if isinstance(columns[0], Column):
        return reduce(and_, columns)._jc
    return java_list(jvm, columns)


def _texts(options: dict[str, str | int | float | None]) -> dict[str, str]:
    texts = {}
    for name, value in options.items():
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise type_error(
                f"The option {name} must be a string or a number, not {type(value).__name__}."
            )
        texts[name] = str(value)
    return texts


def _key_values(keys: object) -> list[tuple[Any, ...]]:
    if isinstance(keys, str) or not isinstance(keys, Sequence):
        raise type_error(f"hot_keys must be a list of keys, not {type(keys).__name__}.")
    values = [key.key if isinstance(key, HotKey) else key for key in keys]
    return [key if isinstance(key, tuple) else (key,) for key in values]


def _literals(spark: SparkSession, rows: Sequence[tuple[Any, ...]]) -> Any:
    from pyspark.sql.functions import lit

    jvm: Any = spark._jvm
    return java_list(jvm, [java_list(jvm, [lit(value)._jc for value in row]) for row in rows])
