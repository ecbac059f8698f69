"""The techniques of :func:`skew_join`, each with its own options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, Union

from pyspark_skewext._engine.request import plain
from pyspark_skewext._errors import value_error
from pyspark_skewext._validate import check_type
from pyspark_skewext.results.skew import HotKey

#: A size in bytes, or text such as ``"64m"``.
Size = Union[int, str]


@dataclass(frozen=True)
class Technique:
    """A way to join that copes with skewed keys; the base of all techniques."""

    name: ClassVar[str] = "none"

    def options(self) -> dict[str, str]:
        """The options that were given, as text."""
        names = [field.name for field in fields(self) if field.name != "hot_keys"]
        given = {name: plain(getattr(self, name)) for name in names}
        for name, value in given.items():
            kinds = (str, int, float, type(None))
            check_type(value, kinds, f"The option {name} must be a string or a number")
        return {name: str(value) for name, value in given.items() if value is not None}

    def keys(self) -> list[tuple[Any, ...]] | None:
        """The hot keys that were given, a tuple for each."""
        given = getattr(self, "hot_keys", None)
        if given is None:
            return None
        check_type(given, (list, tuple), "hot_keys must be a list of keys")
        values = [key.key if isinstance(key, HotKey) else key for key in given]
        return [key if isinstance(key, tuple) else (key,) for key in values]


@dataclass(frozen=True)
class Auto(Technique):
    """Choose a technique by the sizes of the sides.

    Parameters
    ----------
    hot_keys : list, optional
        Keys with many rows: a value each, a tuple of values where the key has several columns, or
        the `hot_keys` of a report.
    """

    name: ClassVar[str] = "auto"
    hot_keys: Sequence[Any] | None = None


@dataclass(frozen=True)
class Adaptive(Technique):
    """Shuffle both sides, and split skewed partitions when their sizes are known.

    Parameters
    ----------
    threshold, factor : int or str, float, optional
        A partition is skewed above this size, in bytes or as ``"64m"``, and above this multiple of
        the median size.
    slice_bytes : int or str, optional
        The size of the slices, in bytes or as ``"64m"``.
    max_slices : int, optional
        The most slices of a partition.
    max_reread_factor, min_gain : float, optional
        The most bytes that a split reads, as a multiple of the partition, and the least ratio of
        the longest task before and after it.

    Examples
    --------
    >>> skewext.Adaptive(threshold="64m", max_slices=20).options()
    {'threshold': '64m', 'max_slices': '20'}
    """

    name: ClassVar[str] = "adaptive"
    threshold: Size | None = None
    factor: float | None = None
    slice_bytes: Size | None = None
    max_slices: int | None = None
    max_reread_factor: float | None = None
    min_gain: float | None = None


@dataclass(frozen=True)
class Broadcast(Technique):
    """Broadcast one side, by Spark's own hash join where Spark has one.

    Parameters
    ----------
    side : {"left", "right"}, optional
        The side to broadcast; by default the smaller one.
    """

    name: ClassVar[str] = "broadcast"
    side: Literal["left", "right"] | None = None


@dataclass(frozen=True)
class BroadcastMap(Broadcast):
    """Broadcast one side in joins of every type, full outer joins too."""

    name: ClassVar[str] = "broadcast_map"


@dataclass(frozen=True)
class IterativeBroadcast(Broadcast):
    """Broadcast one side in chunks, for a side that is too large for one broadcast.

    Parameters
    ----------
    side : {"left", "right"}, optional
        The side to broadcast, as for :class:`Broadcast`.
    chunks, passes : int, optional
        The number of chunks, and of reads of the other side.
    """

    name: ClassVar[str] = "iterative_broadcast"
    chunks: int | None = None
    passes: int | None = None


@dataclass(frozen=True)
class Salted(Technique):
    """Divide the rows of hot keys among several tasks.

    Parameters
    ----------
    salts : int, optional
        The number of parts for the rows of a hot key.
    side : {"left", "right", "both"}, optional
        The side whose rows are divided.
    hot_keys : list, optional
        Keys with many rows, as for :class:`Auto`. Without them, two jobs find the keys.

    Examples
    --------
    >>> skewext.Salted(salts=8, hot_keys=[7]).keys()
    [(7,)]
    """

    name: ClassVar[str] = "salted"
    salts: int | None = None
    side: Literal["left", "right", "both"] | None = None
    hot_keys: Sequence[Any] | None = None


_CLASSES = (Auto, Technique, Adaptive, Broadcast, BroadcastMap, IterativeBroadcast, Salted)
#: The classes by the names of their techniques.
BY_NAME: dict[str, type[Technique]] = {each.name: each for each in _CLASSES}


def technique_of(given: object) -> Technique:
    """The technique, or that of this name with the defaults of its options."""
    if isinstance(given, Technique):
        return given
    check_type(given, str, "technique must be a name or a technique")
    kind = BY_NAME.get(str(given).lower())
    if kind is None:
        raise value_error(f"There is no technique {given!r}; there are {', '.join(BY_NAME)}.")
    return kind()
