"""How much is tested: `make test` and CI have quick tests, `make test-all` all cases."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

#: Whether `make test-all` runs.
TEST_ALL = os.environ.get("SKEWEXT_TEST_ALL") == "1"

#: Whether slow tests run, and generated code where answers are compared.
TEST_SLOW = TEST_ALL or os.environ.get("SKEWEXT_TEST_SLOW") == "1"

#: Whether `make test` or CI runs: no tests that were measured to be slow.
TEST_QUICK = os.environ.get("SKEWEXT_TEST_QUICK") == "1" and not TEST_SLOW

#: Whether the part for another line of Spark runs.
TEST_LINE = os.environ.get("SKEWEXT_TEST_LINE") == "1"


def some(n: int, cases: Sequence[T]) -> Sequence[T]:
    """So many of the cases, chosen as it happens but always the same; or all of them."""
    return cases if TEST_ALL else random.Random(n).sample(list(cases), n)
