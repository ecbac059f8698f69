"""What results have in common: text, a page in notebooks, plain data."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any

from pyspark_skewext.render.explanation import Listing
from pyspark_skewext.render.page import Page
from pyspark_skewext.render.values import jsonable


class Shown(ABC):
    """A result that prints as text, has a page in notebooks, and converts to plain data."""

    @abstractmethod
    def _page(self) -> Page | Listing: ...

    def to_dict(self) -> dict[str, Any]:
        """Convert to dictionaries, lists, numbers and strings; keys of other types to strings."""
        result: dict[str, Any] = jsonable(self)
        return result

    def to_json(self) -> str:
        """Convert to a text in JSON."""
        return json.dumps(self.to_dict(), allow_nan=False)

    def __str__(self) -> str:
        return self._page().text()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return self._page().html()
