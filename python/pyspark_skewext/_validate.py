"""Checks of arguments that Python does better than the JVM: types, and misspelt names."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Union, cast

from pyspark_skewext import _jvm
from pyspark_skewext._engine import engine_of
from pyspark_skewext._engine.request import Request, orders
from pyspark_skewext._errors import analysis_error, type_error, type_name, value_error

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


@dataclass(frozen=True, eq=False)
class Latest:
    """An input of a join that takes part with the newest row of each key.

    :func:`latest` without `on` makes it. The join's key is also the key here.
    """

    df: DataFrame
    by: Sequence[str | Column]
    ties: Sequence[str | Column] | None = None

    def rows(self, keys: Sequence[str], owner: str) -> DataFrame:
        """The newest row of each key of the DataFrame, whose name in errors is given."""
        by = checked_order(self.df, self.by, "by", owner)
        ties = self.ties and checked_order(self.df, self.ties, "ties", owner)
        request = Request("latest", [self.df], keys=keys, by=orders(0, by), ties=orders(0, ties))
        return engine_of(self.df.sparkSession).run(request)


#: A DataFrame or the latest of one, alone or with its key columns if they differ from `on`.
JoinInput = Union["DataFrame", Latest, tuple[Union["DataFrame", Latest], Union[str, Sequence[str]]]]

_NAMES_SHOWN = 20
_COMPARE = "where key columns have other names, compare them: left.a == right.b"


@dataclass
class Input:
    """One input of a join: the data and the names of its key columns."""

    df: DataFrame
    keys: list[str]


def label(position: int) -> str:
    # As in the indicator column.
    return f"Input {position} (counting from 0)"


def owner(position: int) -> str:
    """The same within a sentence."""
    return f"input {position} (counting from 0)"


def side(position: int) -> str:
    return f"The {('left', 'right')[position]} side"


def checked_sides(left: Any, right: Any, on: Any) -> DataFrame:
    """Check the sides of a join, and the names of its key columns; return the left side."""
    several = isinstance(on, Sequence) and not isinstance(on, str)
    columns = [_jvm.is_a(each, "Column") for each in on] if several else []
    if _jvm.is_a(on, "Column") or (columns and all(columns)):
        for position, each in enumerate((left, right)):
            _split(position, each, side)
        _refuse_mixed([left, right], side)
        return cast("DataFrame", left)
    for position, each in enumerate((left, right)):
        if isinstance(each, tuple):
            raise type_error(f"{side(position)} must be a DataFrame, not a tuple; {_COMPARE}.")
    if any(columns):
        raise type_error("on must not mix names and Columns: all one or all the other.")
    inputs, _ = checked_inputs([left, right], on, side, _COMPARE)
    return inputs[0].df


def checked_inputs(
    given: Sequence[Any],
    on: Any,
    label: Callable[[int], str] = label,
    other_names: str = "where its key has another name, pass a tuple: (df, {!r})",
) -> tuple[list[Input], list[str]]:
    """Return the inputs with resolved key columns, and the names of the keys in the result.

    `other_names` is the advice for an input without these columns.
    """
    names = _names(on, "on")
    split = [_split(position, each, label) for position, each in enumerate(given)]
    _refuse_mixed([df for df, _ in split], label)
    same = same_name(split[0][0].sparkSession)
    _refuse_repeated(names, same, "on")
    inputs = [
        Input(df, _existing(df, keys, names, same, f"{label(position)} has no", other_names))
        for position, (df, keys) in enumerate(split)
    ]
    return inputs, names


def latest_inputs(given: Sequence[Any], on: Any) -> tuple[list[Input], list[str]]:
    """The same, with the newest rows of inputs that are :class:`Latest`."""
    newest, frames = zip(*map(_unwrapped, given))
    inputs, names = checked_inputs(frames, on)
    for position, (each, latest) in enumerate(zip(inputs, newest)):
        if latest is not None:
            # The engine would count from this input.
            this = owner(position)
            each.df = latest.rows(checked_columns(each.df, each.keys, "on", this), this)
    return inputs, names


def _unwrapped(given: Any) -> tuple[Latest | None, Any]:
    """The wrapper, if there is one, and the input without it."""
    if isinstance(given, Latest):
        return given, given.df
    if isinstance(given, tuple) and given and isinstance(given[0], Latest):
        return given[0], (given[0].df, *given[1:])
    return None, given


def check_type(given: object, kinds: Any, expected: str) -> None:
    """Refuse a value of another type; a bool is not a number."""
    if isinstance(given, bool) or not isinstance(given, kinds):
        raise type_error(f"{expected}, not {type(given).__name__}.")


def check_progress(progress: object) -> None:
    if progress is not None and not callable(progress):
        raise type_error(
            f"progress must be a function of two numbers or None, not {type(progress).__name__}."
        )


def checked_suffixes(suffixes: Any) -> list[str | None] | None:
    if suffixes is None:
        return None
    expected = "suffixes must be a list with a string or None per input"
    check_type(suffixes, (list, tuple), expected)
    for position, suffix in enumerate(suffixes):
        expected = f"The suffix of input {position} (counting from 0) must be a string or None"
        check_type(suffix, (str, type(None)), expected)
    return list(suffixes)


def checked_indicator(indicator: Any) -> str | None:
    check_type(indicator, (str, type(None)), "indicator must be the name of a column or None")
    if indicator == "":
        raise value_error("indicator must not be an empty name.")
    return cast("str | None", indicator)


def checked_frame(df: Any, what: str) -> None:
    """Refuse anything but a batch DataFrame."""
    if not _jvm.is_a(df, "DataFrame"):
        raise type_error(f"{what} must be a DataFrame, not {type_name(df)}.")
    if df.isStreaming:
        raise analysis_error(f"{what} is a streaming DataFrame; only batch data will do.")


def checked_columns(df: DataFrame, given: Any, what: str, owner: str = "df") -> list[str]:
    """Return names as the columns have them; each exists once.

    `owner` is the name of the DataFrame in errors.
    """
    names = checked_names(df, given, what)
    same = same_name(df.sparkSession)
    resolved = []
    for name in names:
        column = f"{what} has the column {name!r}, which {owner}"
        found = _found(df, name, same, f"{column} does not have")
        if len(found) > 1:
            raise analysis_error(f"{column} has {len(found)} times: rename them.")
        resolved.append(found[0])
    return resolved


def checked_names(df: DataFrame, given: Any, what: str) -> list[str]:
    """Return a list of different names, which `df` may not have."""
    names = _names(given, what)
    _refuse_repeated(names, same_name(df.sparkSession), what)
    return names


def listed_order(given: Any, what: str) -> list[Any]:
    """Return an order as a list of names and Columns, which may not exist."""
    listed = [given] if isinstance(given, str) or _jvm.is_a(given, "Column") else given
    expected = f"{what} must be the name of a column, a Column or a list of them"
    check_type(listed, Sequence, expected)
    if not listed:
        raise value_error(f"{what} must not be empty: at least one column is needed.")
    for each in listed:
        if not _jvm.is_a(each, "Column"):
            check_type(each, str, expected)
    return list(listed)


def checked_order(df: DataFrame, listed: Sequence[Any], what: str, owner: str) -> list[Any]:
    """Return names as the columns have them, and Columns."""
    return [
        checked_columns(df, each, what, owner)[0] if isinstance(each, str) else each
        for each in listed
    ]


def _split(
    position: int, given: Any, label: Callable[[int], str]
) -> tuple[DataFrame, list[str] | None]:
    df, keys = given, None
    if isinstance(given, tuple):
        if len(given) != 2:
            raise type_error(
                f"{label(position)} is a tuple of {len(given)}; it must be a DataFrame or a tuple "
                f"of a DataFrame and the names of its key columns."
            )
        df = given[0]
        keys = _names(given[1], f"The key names of input {position} (counting from 0)")
    if not _jvm.is_a(df, "DataFrame"):
        hint = "; pass the inputs one by one, as in f(*inputs)" if isinstance(df, list) else ""
        raise type_error(
            f"{label(position)} must be a DataFrame or a tuple of a DataFrame and the names of "
            f"its key columns, not {type_name(df)}{hint}."
        )
    return df, keys


def _refuse_mixed(frames: Sequence[DataFrame], label: Callable[[int], str]) -> None:
    homes = [engine_of(df.sparkSession).home for df in frames]
    for position, home in enumerate(homes):
        # Sessions of a server share neither views nor settings; Spark's own join refuses them, too.
        if home != homes[0]:
            raise value_error(
                f"{label(position)} belongs to another Spark Connect session than "
                f"{label(0).lower()}: all must come from one session."
            )


def _names(given: Any, what: str) -> list[str]:
    if isinstance(given, str):
        names = [given]
    elif isinstance(given, Sequence) and all(isinstance(name, str) for name in given):
        names = list(given)
    else:
        found = type(given).__name__
        if isinstance(given, Sequence):
            kinds = {type(each).__name__ for each in given if not isinstance(each, str)}
            found += f" with {', '.join(sorted(kinds))}"
        raise type_error(f"{what} must be the name of a column or a list of names, not {found}.")
    if not names:
        raise value_error(f"{what} must not be empty: at least one column is needed.")
    return names


def same_name(spark: SparkSession) -> Callable[[str, str], bool]:
    if str(spark.conf.get("spark.sql.caseSensitive", "false")).lower() == "true":
        return lambda one, other: one == other
    return lambda one, other: one.lower() == other.lower()


def _refuse_repeated(names: list[str], same: Callable[[str, str], bool], what: str) -> None:
    for position, name in enumerate(names):
        if any(same(name, earlier) for earlier in names[:position]):
            raise value_error(f"{what} must not have the column {name!r} more than once.")


def _existing(
    df: DataFrame,
    keys: list[str] | None,
    on: list[str],
    same: Callable[[str, str], bool],
    missing: str,
    other_names: str,
) -> list[str]:
    """Return names as the columns have them; the JVM refuses a name of several columns."""
    cure, names = "", keys or on
    if keys is None and len(df.columns) >= len(on):
        example = df.columns[: len(on)]
        cure = "; " + other_names.format(example[0] if len(on) == 1 else example)
    found = [_found(df, name, same, f"{missing} column {name!r}", cure) for name in names]
    return [named[0] if len(named) == 1 else name for name, named in zip(names, found)]


def _found(
    df: DataFrame, name: str, same: Callable[[str, str], bool], missing: str, cure: str = ""
) -> list[str]:
    """The columns of that name; an error where there is none."""
    found = [column for column in df.columns if same(column, name)]
    if not found:
        raise analysis_error(
            f"{missing}{_nearest(name, df.columns)}; its columns are {_listed(df.columns)}{cure}."
        )
    return found


def _nearest(name: str, columns: list[str]) -> str:
    by_lower = {column.lower(): column for column in columns}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.75)
    return f" (did you mean {by_lower[close[0]]!r}?)" if close else ""


def _listed(columns: list[str]) -> str:
    shown = ", ".join(repr(column) for column in columns[:_NAMES_SHOWN])
    more = len(columns) - _NAMES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown or "none"
