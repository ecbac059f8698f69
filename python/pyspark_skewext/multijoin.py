"""Joins of any number of DataFrames on one key."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark_skewext import _connect
from pyspark_skewext._chain import chained
from pyspark_skewext._jvm import EXTENSION, api_of, is_connect, java_list
from pyspark_skewext._validate import (
    Input,
    JoinInput,
    checked_indicator,
    checked_inputs,
    checked_suffixes,
)
from pyspark_skewext.roles import How, Role, roles_of

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

    The rows are those of the chain ``df.join(df2, on, "full").join(df3, on, "full")...``; every
    input is shuffled once, however many there are.

    Parameters
    ----------
    df : DataFrame or (DataFrame, str or list of str)
        First input. The tuple names the input's key columns where they differ from `on`.
    *others : DataFrame or (DataFrame, str or list of str)
        Further inputs, at least one.
    on : str or list of str
        Names of the key columns, in the inputs and in the output.
    suffixes : list of str or None, optional
        One entry per input, appended to the names of the input's non-key columns that another
        input has too. None leaves the names, so that the output may have duplicate names.
    indicator : str, optional
        Name of a last column that tells which inputs had the key: an array of their positions,
        counting from 0.

    Returns
    -------
    DataFrame
        The key columns, then the other columns of every input in order.

    Raises
    ------
    AnalysisException
        If an input lacks a key column, the key cannot be joined on, or there are more or fewer
        keys, roles or suffixes than inputs need.
    PySparkTypeError, PySparkValueError
        If an argument is not what it should be.
    PySparkRuntimeError
        If the session does not have the extension.

    See Also
    --------
    multi_join : the same with other kinds of join.

    Notes
    -----
    A NULL in any key column matches nothing, as in SQL: such rows come out alone.

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

    Columns of the same name are told apart by suffixes:

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
        First input. The tuple names the input's key columns where they differ from `on`.
    *others : DataFrame or (DataFrame, str or list of str)
        Further inputs, at least one.
    on : str or list of str
        Names of the key columns, in the inputs and in the output.
    how : {"full", "left", "inner"} or list of Role or str, default "full"
        Which keys come out: those of any input, those of the first, those of all; or a
        :class:`Role` for each input. DataFrame.join's other names for the three work too.
    suffixes : list of str or None, optional
        One entry per input, appended to the names of the input's non-key columns that another
        input has too. None leaves the names, so that the output may have duplicate names.
    indicator : str, optional
        Name of a last column that tells which inputs had the key: an array of their positions,
        counting from 0.

    Returns
    -------
    DataFrame
        The key columns, then the other columns of every input in order; excluded inputs give no
        columns.

    Raises
    ------
    AnalysisException
        If an input lacks a key column, the key cannot be joined on, or there are more or fewer
        keys, roles or suffixes than inputs need.
    PySparkTypeError, PySparkValueError
        If an argument is not what it should be.
    PySparkRuntimeError
        If the session does not have the extension.

    See Also
    --------
    multi_full_join : with ``how="full"``.

    Notes
    -----
    With Spark Connect the server does the join. If it does not have the extension, a chain of
    Spark's own joins is written in place of it, with the same rows and columns, and a warning says
    so.

    If one input is required and all others are small enough to broadcast
    (``spark.sql.autoBroadcastJoinThreshold``), they are, and nothing is shuffled. The plan then has
    Spark's broadcast joins in place of one operator. An input with a broadcast hint is broadcast
    whatever its size, if another input is required; :func:`explain` says why a hint has no effect.

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

    A role per input says more than a name can, here "users who are not banned, with their mails":

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
    inputs, names = checked_inputs([df, *others], on)
    roles = roles_of(how, len(inputs))
    checked = checked_suffixes(suffixes)
    name = checked_indicator(indicator)

    spark = inputs[0].df.sparkSession
    if is_connect(spark):
        return _joined_by_server(inputs, names, roles, checked, name)
    jvm = spark._jvm
    joined = api_of(*(each.df.sparkSession for each in inputs)).multiJoin(
        java_list(jvm, [each.df._jdf for each in inputs]),
        java_list(jvm, [java_list(jvm, each.keys) for each in inputs]),
        java_list(jvm, names),
        java_list(jvm, [role.value for role in roles]),
        None if checked is None else java_list(jvm, checked),
        name,
    )
    from pyspark.sql import DataFrame

    return DataFrame(joined, spark)


def _joined_by_server(
    inputs: Sequence[Input],
    names: Sequence[str],
    roles: Sequence[Role],
    suffixes: Sequence[str | None] | None,
    indicator: str | None,
) -> DataFrame:
    spark = inputs[0].df.sparkSession
    if not _connect.has_extension(spark):
        warnings.warn(
            "The Spark Connect server has no skewext: this is a chain of Spark's own joins, with "
            "the same rows. To have it in one pass, start the server with the skewext jar and "
            f"spark.sql.extensions={EXTENSION}.",
            stacklevel=3,
        )
        return chained(inputs, names, roles, suffixes, indicator)
    return _connect.call(
        spark,
        "skewext_multi_join",
        [each.df for each in inputs],
        {
            "keys": [each.keys for each in inputs],
            "names": names,
            "roles": [role.value for role in roles],
            "suffixes": suffixes,
            "indicator": indicator,
        },
    )
