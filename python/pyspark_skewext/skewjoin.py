"""Joins of two DataFrames by a technique against skew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Union

from pyspark_skewext._engine import engine_of
from pyspark_skewext._engine.calls import SkewJoin
from pyspark_skewext._errors import type_error, value_error
from pyspark_skewext._validate import checked_sides
from pyspark_skewext.results.skew import HotKey

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: What `on` may be, as for DataFrame.join.
On = Union[str, Sequence[str], "Column", Sequence["Column"]]

_TECHNIQUES = (
    *("auto", "none", "adaptive", "broadcast", "broadcast_map", "iterative_broadcast", "salted"),
)
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

    With Spark Connect the server needs the extension.

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
    if technique.lower() not in _TECHNIQUES:
        raise value_error(
            f"There is no technique {technique!r}; there are {', '.join(_TECHNIQUES)}."
        )
    call = SkewJoin(left, right, on, how, technique.lower(), texts, keys)
    return engine_of(spark).skew_join(call)


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
