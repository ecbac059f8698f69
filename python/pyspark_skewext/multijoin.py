"""Joins of any number of DataFrames on one key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark_skewext._engine import engine_of
from pyspark_skewext._engine.request import Request
from pyspark_skewext._validate import (
    JoinInput,
    checked_indicator,
    checked_suffixes,
    latest_inputs,
)
from pyspark_skewext.roles import How, roles_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def multi_full_join(
    df: JoinInput,
    *others: JoinInput,
    on: str | Sequence[str],
    suffixes: Sequence[str | None] | None = None,
    indicator: str | None = None,
) -> DataFrame:
    """Full outer join of two or more DataFrames on one key, in one pass.

    The rows are those of the chain ``df.join(df2, on, "full").join(df3, on, "full")...``. Spark
    shuffles each input once, whatever their number. A NULL in any key column matches nothing, as in
    SQL, and such a row is in the result by itself.

    Parameters
    ----------
    df, *others, on, suffixes, indicator
        As for :func:`multi_join`.

    Returns
    -------
    DataFrame
        The key columns, then the other columns of every input in order.

    See Also
    --------
    multi_join : the same for other types of join, with the same errors.

    Examples
    --------
    >>> cars = spark.createDataFrame([(1, "red"), (2, "blue")], ["id", "colour"])
    >>> trips = spark.createDataFrame([(2, 15.0), (3, 7.5)], ["car", "km"])
    >>> skewext.multi_full_join(
    ...     cars, (trips, "car"), on="id", indicator="sources"
    ... ).orderBy("id").show()
    +---+------+----+-------+
    | id|colour|  km|sources|
    +---+------+----+-------+
    |  1|   red|NULL|    [0]|
    |  2|  blue|15.0| [0, 1]|
    |  3|  NULL| 7.5|    [1]|
    +---+------+----+-------+
    <BLANKLINE>

    >>> skewext.multi_full_join(cars, cars, on="id", suffixes=["_old", "_new"]).columns
    ['id', 'colour_old', 'colour_new']
    """
    return multi_join(df, *others, on=on, how="full", suffixes=suffixes, indicator=indicator)


def multi_join(
    df: JoinInput,
    *others: JoinInput,
    on: str | Sequence[str],
    how: How = "full",
    suffixes: Sequence[str | None] | None = None,
    indicator: str | None = None,
) -> DataFrame:
    """Join of two or more DataFrames on one key, in one pass.

    Parameters
    ----------
    df : DataFrame or (DataFrame, str or list of str)
        First input. The tuple names the input's key columns if their names differ from `on`.
        In place of any DataFrame, :func:`latest` takes its newest row of each key.
    *others : DataFrame or (DataFrame, str or list of str)
        Further inputs, at least one.
    on : str or list of str
        Names of the key columns, in the inputs and in the result.
    how : {"full", "left", "inner"} or list of Role or str, default "full"
        The keys of the result: those of any input, of the first one, or of all; or a :class:`Role`
        for each input. The aliases of ``DataFrame.join`` for the three names work too.
    suffixes : list of str or None, optional
        One entry for each input, appended to the names of its non-key columns that another input
        has too. By default the result may have duplicate names.
    indicator : str, optional
        Name of a last column, an array with the positions of the inputs that have the key,
        counting from 0.

    Returns
    -------
    DataFrame
        The key columns, then the other columns of every input in order. Excluded inputs have no
        columns in it.

    Raises
    ------
    AnalysisException
        If an input lacks a key column, if Spark cannot join on the key, or if the number of keys,
        roles or suffixes is wrong. If the result would have a name twice because of `suffixes` or
        `indicator`, or if an input is a stream.
    PySparkTypeError
        If an argument has a wrong type.
    PySparkValueError
        If `how` or `indicator` is wrong, or `on` is empty or repeats a column.

    Notes
    -----
    If one input is required and all others are small enough for a broadcast
    (``spark.sql.autoBroadcastJoinThreshold``), Spark broadcasts them and shuffles nothing. The plan
    then has Spark's broadcast joins instead of one operator. An input with a broadcast hint counts
    as small whatever its size.

    Examples
    --------
    >>> users = spark.createDataFrame([(1, "ann"), (2, "bob"), (3, "eve")], ["id", "name"])
    >>> mails = spark.createDataFrame([(1, 4), (2, 1)], ["id", "mails"])
    >>> banned = spark.createDataFrame([(2,)], ["id"])
    >>> skewext.multi_join(users, mails, on="id", how="left").orderBy("id").show()
    +---+----+-----+
    | id|name|mails|
    +---+----+-----+
    |  1| ann|    4|
    |  2| bob|    1|
    |  3| eve| NULL|
    +---+----+-----+
    <BLANKLINE>

    A role for each input expresses more joins, here users who are not banned, with their mails:

    >>> roles = [skewext.Role.REQUIRED, skewext.Role.OPTIONAL, skewext.Role.EXCLUDED]
    >>> skewext.multi_join(users, mails, banned, on="id", how=roles).orderBy("id").show()
    +---+----+-----+
    | id|name|mails|
    +---+----+-----+
    |  1| ann|    4|
    |  3| eve| NULL|
    +---+----+-----+
    <BLANKLINE>
    """
    inputs, names = latest_inputs((df, *others), on)
    request = Request(
        "multi_join",
        [each.df for each in inputs],
        keys=[each.keys for each in inputs],
        names=names,
        roles=[role.value for role in roles_of(how, len(inputs))],
        suffixes=checked_suffixes(suffixes),
        indicator=checked_indicator(indicator),
    )
    return engine_of(inputs[0].df.sparkSession).run(request)
