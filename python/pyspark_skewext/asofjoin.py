"""As-of joins: for each row of a spine, the version of other tables that was valid then."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, Union, cast, overload

from pyspark_skewext import _jvm
from pyspark_skewext._engine import engine_of
from pyspark_skewext._engine.request import Computed, Request, constant, orders, plain
from pyspark_skewext._errors import type_error, value_error
from pyspark_skewext._validate import (
    Latest,
    check_type,
    checked_columns,
    checked_frame,
    checked_inputs,
    checked_names,
    checked_order,
    checked_suffixes,
    label,
    listed_order,
    owner,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: The types of a tolerance; a string is an interval.
Tolerance = Union[int, float, Decimal, str, timedelta, "Column"]

#: The types of an order: names, and Columns such as ``sf.asc("price")``.
Order = Union[str, "Column", Sequence[Union[str, "Column"]]]

_DIRECTIONS = ("backward", "forward", "nearest")
_HOWS = ("left", "inner")
_OTHER_KEYS = "on has the names of the spine, and asof(df, on=...) other ones of a table"
# Spark has no interval much longer, and Python no times so far apart.
_MOST_DAYS = 100_000_000


@dataclass(frozen=True, eq=False)
class AsOf:
    """A table of versions, and how :func:`asof_join` matches them. :func:`asof` makes it."""

    df: DataFrame
    time: str
    on: Sequence[str] | Mapping[str, str] | None
    direction: str
    tolerance: str | Column | None
    allow_exact_matches: bool
    ties: Sequence[str | Column] | None


def asof(
    df: DataFrame,
    *,
    time: str,
    on: str | Sequence[str] | Mapping[str, str] | None = None,
    direction: str = "backward",
    tolerance: Tolerance | None = None,
    allow_exact_matches: bool = True,
    ties: Order | None = None,
) -> AsOf:
    """Describe a table of versions for :func:`asof_join`.

    Parameters
    ----------
    df : DataFrame
        The versions.
    time : str
        Name of the column with the time of a version. Spark must be able to compare it with the
        time of the spine.
    on : str or list of str or dict, optional
        Names of the key columns, if they differ from `on` of the join. A dict is for other key
        columns of the spine: it maps each of them to a column of `df`.
    direction : {"backward", "forward", "nearest"}, default "backward"
        The match: the last version at or before the time of the spine, the first one at or after
        it, or the closest one. Of two versions at the same distance, it is the earlier one.
    tolerance : number or str or timedelta or Column, optional
        The largest distance of a match, inclusive: an interval such as "7 days", a timedelta, a
        number where times are numbers, or a literal Column.
    allow_exact_matches : bool, default True
        Whether a version at the exact time of the spine matches.
    ties : str or Column or list of them, optional
        Which of the versions with equal keys and times matches: as `by` of :func:`latest`. By
        default all other columns decide, from left to right.

    Returns
    -------
    AsOf
        An argument for :func:`asof_join`, which checks the names of columns.
    """
    checked_frame(df, "df")
    if not isinstance(allow_exact_matches, bool):
        found = type(allow_exact_matches).__name__
        raise type_error(f"allow_exact_matches must be True or False, not {found}.")
    check_type(time, str, "time must be the name of a column")
    keys: Any = on
    if isinstance(on, Mapping):
        checked_names(df, list(on.values()), "on")
    elif on is not None:
        keys = checked_names(df, on, "on")
    return AsOf(
        df,
        time,
        keys,
        _one_of(_DIRECTIONS, direction, "direction"),
        _tolerance(df, tolerance),
        allow_exact_matches,
        None if ties is None else listed_order(ties, "ties"),
    )


def asof_join(
    spine: DataFrame,
    *versions: AsOf,
    on: str | Sequence[str],
    time: str,
    how: str = "left",
    suffixes: Sequence[str | None] | None = None,
) -> DataFrame:
    """Join each row of a spine with one version of each other table: the one valid at its time.

    Spark shuffles the spine and each table of versions with the same key once.

    Parameters
    ----------
    spine : DataFrame
        The rows of the result, such as events or labels.
    *versions : AsOf
        Tables of versions, each described by :func:`asof`.
    on : str or list of str
        Names of the key columns.
    time : str
        Name of the spine's column with the time.
    how : {"left", "inner"}, default "left"
        Whether a row of the spine without a match in some table has nulls there, or is left out.
    suffixes : list of str or None, optional
        One entry for the spine and one for each table, appended to the names of columns that
        another one has too. Without it, such names are an error.

    Returns
    -------
    DataFrame
        The columns of the spine, then those of each table without its keys, in order. With "left"
        each row of the spine appears exactly once. A null key or a null time matches nothing.

    Raises
    ------
    AnalysisException
        If an input lacks a column or is a stream, if Spark cannot compare times or keys, if a
        tolerance does not fit the type of the times, or if names of columns collide.
    PySparkTypeError
        If an argument has a wrong type.
    PySparkValueError
        If no table follows the spine, `how` is unknown, or `on` is empty or repeats a column.

    Examples
    --------
    >>> labels = spark.createDataFrame([(1, 10), (1, 40), (2, 30)], ["user", "at"])
    >>> rows = [(1, 5, "free"), (1, 20, "paid"), (2, 35, "free")]
    >>> plans = spark.createDataFrame(rows, ["user", "since", "plan"])
    >>> clicks = spark.createDataFrame([(1, 10, "a"), (1, 30, "b")], ["uid", "clicked", "ad"])
    >>> skewext.asof_join(
    ...     labels,
    ...     skewext.asof(plans, time="since"),
    ...     skewext.asof(clicks, time="clicked", on="uid", tolerance=5),
    ...     on="user",
    ...     time="at",
    ... ).orderBy("user", "at").show()
    +----+---+-----+----+-------+----+
    |user| at|since|plan|clicked|  ad|
    +----+---+-----+----+-------+----+
    |   1| 10|    5|free|     10|   a|
    |   1| 40|   20|paid|   NULL|NULL|
    |   2| 30| NULL|NULL|   NULL|NULL|
    +----+---+-----+----+-------+----+
    <BLANKLINE>
    """
    checked_frame(spine, "spine")
    if not versions:
        raise value_error("asof_join needs at least one asof(df, time=...) after the spine.")
    for position, given in enumerate(versions, 1):
        check_type(given, AsOf, f"{label(position)} must be made by asof(df, time=...)")
    versions = tuple(_found(each, owner(position)) for position, each in enumerate(versions, 1))
    keys, pairs = _spine_columns(spine, on), []
    for position, each in enumerate(versions, 1):
        names, table = keys, (each.df, each.on) if each.on else each.df
        if isinstance(each.on, Mapping):
            names, table = list(each.on), (each.df, list(each.on.values()))
        sides = [(spine, names), table]
        pairs.append(checked_inputs(sides, names, partial(_side, position), _OTHER_KEYS)[0])
    check_type(time, str, "time must be the name of a column")
    request = Request(
        "asof_join",
        [spine, *(each.df for each in versions)],
        keys=[right.keys for _, right in pairs],
        spine_keys=[left.keys for left, _ in pairs],
        time=_spine_columns((spine, time), time)[0],
        times=[each.time for each in versions],
        directions=[each.direction for each in versions],
        tolerances=[
            each.tolerance
            if each.tolerance is None or isinstance(each.tolerance, str)
            else Computed(position, each.tolerance)
            for position, each in enumerate(versions, 1)
        ],
        exact=[each.allow_exact_matches for each in versions],
        ties=[orders(position, each.ties) for position, each in enumerate(versions, 1)],
        how=_one_of(_HOWS, how, "how"),
        suffixes=checked_suffixes(suffixes),
    )
    return engine_of(spine.sparkSession).run(request)


@overload
def latest(
    df: DataFrame, on: str | Sequence[str], *, by: Order, ties: Order | None = None
) -> DataFrame: ...


@overload
def latest(df: DataFrame, on: None = None, *, by: Order, ties: Order | None = None) -> Latest: ...


def latest(
    df: DataFrame,
    on: str | Sequence[str] | None = None,
    *,
    by: Order,
    ties: Order | None = None,
) -> DataFrame | Latest:
    """Keep the newest row of each key.

    Parameters
    ----------
    df : DataFrame
        The rows.
    on : str or list of str, optional
        Names of the key columns. Without it, the result is an input for :func:`multi_join` or
        :func:`multi_full_join`, whose key it takes.
    by : str or Column or list of them
        The row with the greatest value is the newest; null is the smallest value. A Column with an
        order, such as ``sf.asc("price")``, takes the first row in that order.
    ties : str or Column or list of them, optional
        The same for rows that are equal in `by`. By default all other columns decide, from left to
        right.

    Returns
    -------
    DataFrame or Latest
        All columns of `df`, with one row for each key; rows with a null key are those of one key.

    Examples
    --------
    >>> rows = [(1, 3, 9.5), (1, 7, 8.0), (2, 5, 4.0)]
    >>> prices = spark.createDataFrame(rows, ["id", "day", "price"])
    >>> skewext.latest(prices, on="id", by="day").orderBy("id").show()
    +---+---+-----+
    | id|day|price|
    +---+---+-----+
    |  1|  7|  8.0|
    |  2|  5|  4.0|
    +---+---+-----+
    <BLANKLINE>

    >>> names = spark.createDataFrame([(1, "tea"), (3, "jam")], ["id", "name"])
    >>> skewext.multi_full_join(
    ...     names, skewext.latest(prices, by="day"), on="id"
    ... ).orderBy("id").show()
    +---+----+----+-----+
    | id|name| day|price|
    +---+----+----+-----+
    |  1| tea|   7|  8.0|
    |  2|NULL|   5|  4.0|
    |  3| jam|NULL| NULL|
    +---+----+----+-----+
    <BLANKLINE>
    """
    checked_frame(df, "df")
    found = Latest(df, listed_order(by, "by"), None if ties is None else listed_order(ties, "ties"))
    return found if on is None else found.rows(checked_columns(df, on, "on"), "df")


def _found(table: AsOf, this: str) -> AsOf:
    """The same table with the names of its columns as it has them."""
    df, on = table.df, table.on
    if isinstance(on, Mapping):
        on = dict(zip(on, checked_columns(df, list(on.values()), "on", this)))
    elif on is not None:
        on = checked_columns(df, on, "on", this)
    return replace(
        table,
        time=checked_columns(df, table.time, "time", this)[0],
        on=on,
        ties=table.ties and checked_order(df, table.ties, "ties", this),
    )


def _side(position: int, side: int) -> str:
    """The label of the spine, or of the table of versions at that position."""
    return label(position) if side else "The spine"


def _spine_columns(spine: Any, names: str | Sequence[str]) -> list[str]:
    (found,), _ = checked_inputs([spine], names, partial(_side, 0), _OTHER_KEYS)
    return found.keys


def _one_of(known: Sequence[str], given: object, what: str) -> str:
    if given not in known:
        raise value_error(f"{what} must be {' or '.join(map(repr, known))}, not {given!r}.")
    return str(given)


def _tolerance(df: DataFrame, given: Any) -> str | Column | None:
    """A Column, or a constant as SQL writes it."""
    given = plain(_duration(given))
    if isinstance(given, timedelta):
        # Spark subtracts whole days from a date as days, and other intervals as hours.
        if given % timedelta(1) and given.days < _MOST_DAYS:
            return f"INTERVAL '{given // timedelta(microseconds=1)} microseconds'"
        return f"INTERVAL '{min(given.days, _MOST_DAYS)} days'"
    if isinstance(given, str):
        return _interval(df, given)
    if given is None or _jvm.is_a(given, "Column"):
        return cast("Column | None", given)
    expected = "tolerance must be a number, an interval like '7 days', a timedelta or a Column"
    check_type(given, (int, float, Decimal), expected)
    return constant(given)


def _interval(df: DataFrame, words: str) -> str:
    """An interval that Spark can read."""
    from pyspark.errors import AnalysisException

    interval = f"INTERVAL {constant(words)}"
    try:
        _ = df.sparkSession.sql(f"SELECT {interval}").schema
    except AnalysisException:
        raise value_error(
            f"tolerance must be an interval like '7 days' or '1 month', not {words!r}."
        ) from None
    return interval


def _duration(given: Any) -> Any:
    """A numpy.timedelta64 as a timedelta: numpy itself makes a number of most of them."""
    numpy: Any = sys.modules.get("numpy")
    if numpy is None or not isinstance(given, numpy.timedelta64):
        return given
    # One of nanoseconds is a number to numpy, as is one of months, which have no fixed length.
    is_fine = numpy.datetime_data(given.dtype)[0] in ("ns", "ps", "fs", "as")
    found = (given.astype("timedelta64[us]") if is_fine else given).item()
    if type(found) is not timedelta:
        raise value_error(
            f"tolerance must be a duration in weeks, days, hours or smaller units, not {given!r}."
        )
    return found
