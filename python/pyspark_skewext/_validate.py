"""What can be said about the arguments of a join before the JVM sees them."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Union

from pyspark_skewext import _jvm
from pyspark_skewext._errors import analysis_error, type_error, value_error

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

#: A DataFrame, or one with the names of its key columns where they differ from `on`.
JoinInput = Union["DataFrame", tuple["DataFrame", Union[str, Sequence[str]]]]

_NAMES_SHOWN = 20


@dataclass
class Input:
    """One input of a join: the data and the names of its key columns."""

    label: str
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
    from pyspark.sql import Column

    if isinstance(on, Column):
        return _checked_frames(left, right)
    for position, each in enumerate((left, right)):
        if isinstance(each, tuple):
            raise type_error(
                f"{side(position)} must be a DataFrame, not a tuple; where key columns have other "
                f"names, compare them: left.a == right.b."
            )
    if isinstance(on, Sequence) and any(isinstance(each, Column) for each in on):
        raise type_error(
            "on must be the name of a column, a list of names, or one Column; combine several "
            "comparisons with &."
        )
    inputs, _ = checked_inputs([left, right], on, label=side)
    return inputs[0].df


def _checked_frames(left: Any, right: Any) -> DataFrame:
    frames = [_split(position, each, side)[0] for position, each in enumerate((left, right))]
    for position, df in enumerate(frames):
        _check_session(Input(side(position), df, []), frames[0].sparkSession)
    return frames[0]


def checked_inputs(
    given: Sequence[Any],
    on: Any,
    least: int = 2,
    label: Callable[[int], str] = label,
) -> tuple[list[Input], list[str]]:
    """Return the inputs with resolved key columns, and the names of the keys in the output."""
    names = _names(on, "on")
    split = [_split(position, each, label) for position, each in enumerate(given)]
    if len(split) < least:
        raise value_error("A join needs at least two inputs, but only one was given.")
    inputs = [
        Input(label(position), df, names if keys is None else keys)
        for position, (df, keys) in enumerate(split)
    ]
    session = inputs[0].df.sparkSession
    same = _same_name(session)
    _refuse_repeated(names, same)
    for each in inputs:
        _check_session(each, session)
        _check_keys(each, names, same)
    return inputs, names


def checked_suffixes(suffixes: Any, inputs: int) -> list[str | None] | None:
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
    if len(suffixes) != inputs:
        raise value_error(
            f"suffixes has {len(suffixes)} entries but there are {inputs} inputs: it needs one "
            f"each, None for an input whose names are to stay."
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
    """Refuse whatever is not a DataFrame of a session in this driver, with rows that end."""
    if _jvm.is_connect(df):
        raise type_error(
            f"{what} is a Spark Connect DataFrame; skewext needs a session that runs in the driver."
        )
    from pyspark.sql import DataFrame

    if not isinstance(df, DataFrame):
        raise type_error(f"{what} must be a DataFrame, not {type(df).__name__}.")
    if df.isStreaming:
        raise analysis_error(f"{what} is a streaming DataFrame; only batch data will do.")


def checked_columns(df: DataFrame, given: Any, what: str) -> list[str]:
    """Return the names of columns as they really are; they exist, once each."""
    names = _names(given, what)
    same = _same_name(df.sparkSession)
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
    if _jvm.is_connect(df):
        raise type_error(
            f"{label(position)} is a Spark Connect DataFrame; skewext needs a session that runs "
            f"in the driver."
        )
    from pyspark.sql import DataFrame

    if not isinstance(df, DataFrame):
        hint = "; pass the inputs one by one, as in f(*inputs)" if isinstance(df, list) else ""
        raise type_error(
            f"{label(position)} must be a DataFrame or a tuple of a DataFrame and the names of "
            f"its key columns, not {type(df).__name__}{hint}."
        )
    return df, keys


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


def _same_name(spark: SparkSession) -> Callable[[str, str], bool]:
    if str(spark.conf.get("spark.sql.caseSensitive", "false")).lower() == "true":
        return lambda one, other: one == other
    return lambda one, other: one.lower() == other.lower()


def _refuse_repeated(names: list[str], same: Callable[[str, str], bool], what: str = "on") -> None:
    for position, name in enumerate(names):
        if any(same(name, earlier) for earlier in names[:position]):
            raise value_error(f"{what} must not have the column {name!r} more than once.")


def _check_session(each: Input, session: SparkSession) -> None:
    if not session._jsparkSession.equals(each.df.sparkSession._jsparkSession):
        raise value_error(
            f"{each.label} belongs to another Spark session than input 0: all inputs must come "
            f"from the same one."
        )
    if each.df.isStreaming:
        raise analysis_error(f"{each.label} is a streaming DataFrame; only batch data will do.")


def _check_keys(each: Input, names: list[str], same: Callable[[str, str], bool]) -> None:
    """Check the key columns; replaces the names by those that the columns really have."""
    if len(each.keys) != len(names):
        raise value_error(
            f"{each.label} has {len(each.keys)} key names but on has {len(names)}: they must "
            f"correspond one by one."
        )
    fields = each.df.schema.fields
    resolved = []
    for key in each.keys:
        found = [field for field in fields if same(field.name, key)]
        if len(found) > 1:
            raise analysis_error(
                f"{each.label} has {len(found)} columns named {key!r}, so the key is ambiguous; "
                f"rename or drop all but one."
            )
        if not found:
            raise analysis_error(
                f"{each.label} has no column {key!r}{_nearest(key, each.df.columns)}; its columns "
                f"are {_listed(each.df.columns)}."
            )
        if _has_map(found[0].dataType):
            raise analysis_error(
                f"{each.label} has the key column {key!r} of type "
                f"{found[0].dataType.simpleString()}: maps cannot be compared, so they cannot be "
                f"keys."
            )
        resolved.append(found[0].name)
    each.keys = resolved


def _nearest(name: str, columns: list[str]) -> str:
    by_lower = {column.lower(): column for column in columns}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.75)
    return f" (did you mean {by_lower[close[0]]!r}?)" if close else ""


def _listed(columns: list[str]) -> str:
    shown = ", ".join(repr(column) for column in columns[:_NAMES_SHOWN])
    more = len(columns) - _NAMES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown or "none"


def _has_map(kind: DataType) -> bool:
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, ArrayType):
        return _has_map(kind.elementType)
    if isinstance(kind, StructType):
        return any(_has_map(field.dataType) for field in kind.fields)
    return isinstance(kind, MapType)
