"""How much is tried: `make test-all` has all cases of what `make test` tries some of."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

#: Whether `make test-all` runs.
TEST_ALL = os.environ.get("SKEWEXT_TEST_ALL") == "1"


def some(n: int, cases: Sequence[T]) -> Sequence[T]:
    """So many of the cases, chosen as it happens but always the same; or all of them."""
    return cases if TEST_ALL else random.Random(n).sample(list(cases), n)
