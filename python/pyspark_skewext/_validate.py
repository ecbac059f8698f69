"""What the JVM cannot say of arguments, or not as well: wrong types, and names nearly right."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Union, cast

from pyspark_skewext import _jvm
from pyspark_skewext._errors import analysis_error, type_error, value_error

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: A DataFrame, or one with the names of its key columns where they differ from `on`.
JoinInput = Union["DataFrame", tuple["DataFrame", Union[str, Sequence[str]]]]

_NAMES_SHOWN = 20


@dataclass
class Input:
    """One input of a join: the data and the names of its key columns."""

    df: DataFrame
    keys: list[str]


def label(position: int) -> str:
    # The indicator column counts from 0; errors and data should not differ.
    return f"Input {position} (counting from 0)"


def _key_names(position: int) -> str:
    return f"The key names of input {position} (counting from 0)"


def side(position: int) -> str:
    return f"The {('left', 'right')[position]} side"


def checked_sides(left: Any, right: Any, on: Any) -> DataFrame:
    """Check the sides of a join of two, of which the names of columns may be the key."""
    several = isinstance(on, Sequence) and not isinstance(on, str)
    columns = [_jvm.is_a(each, "Column") for each in on] if several else []
    if _jvm.is_a(on, "Column") or (columns and all(columns)):
        for position, each in enumerate((left, right)):
            _split(position, each, side)
        _refuse_mixed([left, right], side)
        return cast("DataFrame", left)
    for position, each in enumerate((left, right)):
        if isinstance(each, tuple):
            raise type_error(
                f"{side(position)} must be a DataFrame, not a tuple; where key columns have other "
                f"names, compare them: left.a == right.b."
            )
    if any(columns):
        raise type_error("on must not mix names and Columns: all one or all the other.")
    inputs, _ = checked_inputs([left, right], on, label=side)
    return inputs[0].df


def checked_inputs(
    given: Sequence[Any], on: Any, label: Callable[[int], str] = label
) -> tuple[list[Input], list[str]]:
    """Return the inputs with resolved key columns, and the names of the keys in the output."""
    names = _names(on, "on")
    split = [_split(position, each, label) for position, each in enumerate(given)]
    _refuse_mixed([df for df, _ in split], label)
    same = same_name(split[0][0].sparkSession)
    _refuse_repeated(names, same, "on")
    inputs = [
        Input(df, _existing(df, names if keys is None else keys, same, f"{label(position)} has no"))
        for position, (df, keys) in enumerate(split)
    ]
    return inputs, names


def checked_suffixes(suffixes: Any) -> list[str | None] | None:
    if suffixes is None:
        return None
    if isinstance(suffixes, str) or not isinstance(suffixes, Sequence):
        raise type_error(
            f"suffixes must be a list with a string or None per input, not "
            f"{type(suffixes).__name__}."
        )
    for position, suffix in enumerate(suffixes):
        if suffix is not None and not isinstance(suffix, str):
            raise type_error(
                f"The suffix of input {position} (counting from 0) must be a string or None, not "
                f"{type(suffix).__name__}."
            )
    return list(suffixes)


def checked_indicator(indicator: Any) -> str | None:
    if indicator is not None and not isinstance(indicator, str):
        raise type_error(
            f"indicator must be the name of a column or None, not {type(indicator).__name__}."
        )
    if indicator == "":
        raise value_error("indicator must not be an empty name.")
    return indicator


def checked_frame(df: Any, what: str) -> None:
    """Refuse whatever is not a DataFrame with rows that end."""
    if not _jvm.is_a(df, "DataFrame"):
        raise type_error(f"{what} must be a DataFrame, not {type(df).__name__}.")
    if df.isStreaming:
        raise analysis_error(f"{what} is a streaming DataFrame; only batch data will do.")


def checked_columns(df: DataFrame, given: Any, what: str) -> list[str]:
    """Return the names of columns as they really are; they exist, once each."""
    names = _names(given, what)
    same = same_name(df.sparkSession)
    _refuse_repeated(names, same, what)
    resolved = []
    for name in names:
        found = [column for column in df.columns if same(column, name)]
        if len(found) > 1:
            raise analysis_error(
                f"{what} has the column {name!r}, of which df has {len(found)}; rename or drop all "
                f"but one."
            )
        if not found:
            raise analysis_error(
                f"{what} has the column {name!r}, which df does not have"
                f"{_nearest(name, df.columns)}; its columns are {_listed(df.columns)}."
            )
        resolved.append(found[0])
    return resolved


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
        keys = _names(given[1], _key_names(position))
    if not _jvm.is_a(df, "DataFrame"):
        hint = "; pass the inputs one by one, as in f(*inputs)" if isinstance(df, list) else ""
        raise type_error(
            f"{label(position)} must be a DataFrame or a tuple of a DataFrame and the names of "
            f"its key columns, not {type(df).__name__}{hint}."
        )
    return df, keys


def _refuse_mixed(frames: Sequence[DataFrame], label: Callable[[int], str]) -> None:
    for position, df in enumerate(frames):
        if _jvm.is_connect(df) != _jvm.is_connect(frames[0]):
            kinds = ("is", "is not") if _jvm.is_connect(df) else ("is not", "is")
            raise type_error(
                f"{label(position)} {kinds[0]} a Spark Connect DataFrame, and {label(0).lower()} "
                f"{kinds[1]}: all must come from one session."
            )
        # Sessions of a server share neither views nor settings; Spark's own join refuses them, too.
        if _jvm.is_connect(df) and _session_id(df) != _session_id(frames[0]):
            raise value_error(
                f"{label(position)} belongs to another Spark Connect session than "
                f"{label(0).lower()}: all must come from one session."
            )


def _session_id(df: Any) -> str:
    return str(df.sparkSession.session_id)


def _names(given: Any, what: str) -> list[str]:
    if isinstance(given, str):
        names = [given]
    elif isinstance(given, Sequence) and all(isinstance(name, str) for name in given):
        names = list(given)
    else:
        raise type_error(
            f"{what} must be the name of a column or a list of names, not {_described(given)}."
        )
    if not names:
        raise value_error(f"{what} must not be empty: at least one column is needed.")
    if "" in names:
        raise value_error(f"{what} must not have an empty name.")
    return names


def _described(given: Any) -> str:
    if isinstance(given, Sequence):
        kinds = sorted({type(each).__name__ for each in given if not isinstance(each, str)})
        return f"{type(given).__name__} with {', '.join(kinds)}"
    return type(given).__name__


def same_name(spark: SparkSession) -> Callable[[str, str], bool]:
    if str(spark.conf.get("spark.sql.caseSensitive", "false")).lower() == "true":
        return lambda one, other: one == other
    return lambda one, other: one.lower() == other.lower()


def _refuse_repeated(names: list[str], same: Callable[[str, str], bool], what: str) -> None:
    for position, name in enumerate(names):
        if any(same(name, earlier) for earlier in names[:position]):
            raise value_error(f"{what} must not have the column {name!r} more than once.")


def _existing(
    df: DataFrame, names: list[str], same: Callable[[str, str], bool], missing: str
) -> list[str]:
    """Return the names as the columns have them; where several have one, the JVM refuses it."""
    columns = df.columns
    found = [[column for column in columns if same(column, name)] for name in names]
    for name, named in zip(names, found):
        if not named:
            raise analysis_error(
                f"{missing} column {name!r}{_nearest(name, columns)}; its columns are "
                f"{_listed(columns)}."
            )
    return [named[0] if len(named) == 1 else name for name, named in zip(names, found)]


def _nearest(name: str, columns: list[str]) -> str:
    by_lower = {column.lower(): column for column in columns}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.75)
    return f" (did you mean {by_lower[close[0]]!r}?)" if close else ""


def _listed(columns: list[str]) -> str:
    shown = ", ".join(repr(column) for column in columns[:_NAMES_SHOWN])
    more = len(columns) - _NAMES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown or "none"
