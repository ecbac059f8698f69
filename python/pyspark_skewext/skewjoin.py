"""Joins of two DataFrames by a technique against skewed keys."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Union

from pyspark_skewext._engine import engine_of
from pyspark_skewext._engine.request import Request, constant, identifier, names_of
from pyspark_skewext._errors import value_error
from pyspark_skewext._validate import check_type, checked_sides
from pyspark_skewext.techniques import Salted, Technique, technique_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: The types of `on`, as for DataFrame.join.
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
    technique: str | Technique = "auto",
) -> DataFrame:
    """Join two DataFrames by a technique against skewed keys.

    The rows and columns are those of ``left.join(right, on, how)``, whatever the technique.

    Parameters
    ----------
    left, right : DataFrame
        The sides of the join.
    on : str or list of str or Column or list of Column
        Names of columns of both sides, or conditions that must all hold, as for
        ``DataFrame.join``.
    how : str, default "inner"
        The type of the join, as for ``DataFrame.join``, except "cross".
    technique : str or Technique, default "auto"
        One of :class:`Auto`, :class:`Adaptive`, :class:`Broadcast`, :class:`BroadcastMap`,
        :class:`IterativeBroadcast` and :class:`Salted`, with its options. A name takes the
        defaults: "auto", "adaptive", "broadcast", "broadcast_map", "iterative_broadcast" or
        "salted". "none" is Spark's own join.

    Returns
    -------
    DataFrame
        The result of ``left.join(right, on, how)``.

    Raises
    ------
    AnalysisException
        If a side lacks a key column, the technique cannot do the join, or an option is wrong.
    PySparkTypeError
        If an argument has a wrong type.
    PySparkValueError
        If `how` or `technique` is unknown, or `on` is empty or repeats a column.

    See Also
    --------
    skew_report : finds the hot keys.
    explain : shows the chosen technique, and why.

    Notes
    -----
    A hint does the same, in SQL ``/*+ SKEWEXT_JOIN(t, broadcast_map) */``, or on a DataFrame
    ``df.hint("skewext_join", "broadcast_map")``. Spark ignores a wrong hint with a warning.

    Examples
    --------
    >>> visits = spark.createDataFrame([(1, "a"), (1, "b"), (1, "c"), (2, "d")], ["user", "page"])
    >>> users = spark.createDataFrame([(1, "ann"), (3, "eve")], ["user", "name"])
    >>> salted = skewext.Salted(hot_keys=[1])
    >>> joined = skewext.skew_join(visits, users, "user", "full", technique=salted)
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
    chosen = technique_of(technique)
    keys = _keys_without_zone(left, right, on, chosen.keys())
    engine = engine_of(spark)
    if keys is None and chosen.name == Salted.name:
        keys = engine.hot_keys(left, right, on)
    condition: Any = on if isinstance(on, str) or not isinstance(on, Sequence) else list(on)
    request = Request(
        "skew_join",
        [left.join(right, condition, how)],
        inputs=[left, right],
        technique=chosen.name,
        hot_keys=None if keys is None else [[constant(value) for value in key] for key in keys],
        **chosen.options(),
    )
    return engine.run(request)


def _keys_without_zone(
    left: DataFrame, right: DataFrame, on: On, keys: list[tuple[Any, ...]] | None
) -> list[tuple[Any, ...]] | None:
    """The hot keys, with times as text where the join compares times without a zone.

    Python has one class for both types of times, and lit() takes a time without a zone as local.
    """
    from pyspark.sql.types import TimestampNTZType, TimestampType

    def is_local(value: object) -> bool:
        return isinstance(value, datetime) and value.tzinfo is None

    names = names_of(on)
    if keys is None or names is None or not any(is_local(value) for key in keys for value in key):
        return keys
    columns = [identifier(name) for name in names]
    schemas = zip(left.select(*columns).schema, right.select(*columns).schema)
    kinds = [{type(a.dataType), type(b.dataType)} for a, b in schemas]
    # Spark compares a TIMESTAMP_NTZ with a TIMESTAMP as a TIMESTAMP.
    zoneless = {
        position
        for position, both in enumerate(kinds)
        if TimestampNTZType in both and TimestampType not in both
    }
    return [
        tuple(
            value.isoformat(" ") if position in zoneless and is_local(value) else value
            for position, value in enumerate(key)
        )
        for key in keys
    ]


def _check_how(how: object) -> None:
    check_type(how, str, "how must be the name of a kind of join")
    name = str(how).lower()
    if name == "cross":
        raise value_error("how must not be 'cross': a cross join has no key that could be skewed.")
    if name in ("right_semi", "right_anti", "rightsemi", "rightanti"):
        raise value_error(f"how must not be {how!r}: swap the sides and take left_{name[-4:]}.")
    if name not in _HOWS:
        raise value_error(f"how must be one of {', '.join(_HOWS)}, not {how!r}.")
