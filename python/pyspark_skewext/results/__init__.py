"""Plain dataclasses of the figures that the JVM gives as JSON."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

T = TypeVar("T")


def filled(kind: type[T], figures: dict[str, Any], **converted: Any) -> T:
    """Make a dataclass or a named tuple of figures with the names of its fields.

    `converted` has other fields. `_parts` of the class has the classes of fields that are such
    figures themselves, or lists of them.
    """
    of_class: Any = kind
    names = getattr(kind, "_fields", None) or [each.name for each in dataclasses.fields(of_class)]
    parts: dict[str, Any] = getattr(kind, "_parts", {})
    own = {
        name: _part(parts.get(name), figures[name])
        for name in names
        if name in figures and name not in converted
    }
    return kind(**own, **converted)


def _part(kind: Any, figures: Any) -> Any:
    if kind is None or figures is None:
        return figures
    if isinstance(figures, list):
        return [filled(kind, each) for each in figures]
    return filled(kind, figures)
