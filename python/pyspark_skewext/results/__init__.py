"""Plain dataclasses of the figures that the JVM gives as JSON."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

T = TypeVar("T")


def filled(kind: type[T], figures: dict[str, Any], **converted: Any) -> T:
    """Make a dataclass of figures with the names of its fields, and of converted ones."""
    names = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    own = {name: figures[name] for name in names if name in figures and name not in converted}
    return kind(**own, **converted)
