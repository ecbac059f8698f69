"""Plans as text, which a session of Spark Connect has as well."""

from __future__ import annotations

import io
from contextlib import redirect_stdout

from pyspark.sql import DataFrame


def plan_of(df: DataFrame) -> str:
    """The physical plan."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        df.explain()
    return printed.getvalue()
