"""``join``: read, join, write, say what was done."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyspark_skewext._errors import analysis_error
from pyspark_skewext._plans import exchange_count
from pyspark_skewext.cli.files import write
from pyspark_skewext.cli.progress import Progress
from pyspark_skewext.cli.request import Request, suggested_suffixes
from pyspark_skewext.cli.session import session
from pyspark_skewext.multijoin import multi_join

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COUNTS_SECONDS = 10.0


def run(request: Request) -> None:
    """Carry out a request; progress goes to standard error, the summary to standard output."""
    started = time.monotonic()
    print("Starting Spark ...", file=sys.stderr, flush=True)
    with session("join", request) as spark, Progress(spark, sys.stderr) as progress:
        if request.mode in ("error", "ignore") and _exists(spark, request.output):
            if request.mode == "error":
                raise analysis_error(
                    f"{request.output} exists already: choose another --output, or --mode "
                    f"overwrite, append or ignore."
                )
            print(f"{request.output} exists already: nothing was done.")
            return
        tables = []
        for each in request.inputs:
            progress.step(f"Reading {each.path}")
            tables.append(each.read(spark, request.infer_types))
        counted = [_RowCount(table) for table in tables]
        joined = multi_join(
            *((each.df, given.keys or request.on) for each, given in zip(counted, request.inputs)),
            on=request.on,
            how=request.how,
            suffixes=request.suffixes,
            indicator=request.indicator,
        )
        _refuse_clashes(joined, request)
        exchanges = exchange_count(joined)
        result = _RowCount(joined)
        progress.step(f"Joining {len(tables)} inputs into {request.output}")
        write(_writable(result.df, request), request.output, request.output_format, request.mode)
        rows = [each.rows() for each in [*counted, result]]
    _summarize(request, rows, exchanges, time.monotonic() - started)


class _RowCount:
    """Counts the rows of a DataFrame while the query runs, so that none is read twice."""

    def __init__(self, table: DataFrame) -> None:
        from pyspark.sql import Observation
        from pyspark.sql.functions import count, lit

        self._observation = Observation()
        self.df = table.observe(self._observation, count(lit(1)).alias("rows"))

    def rows(self) -> int | None:
        """Return the count, or None where the query did not have to read the rows."""
        observation: Any = self._observation
        # The count arrives by a listener, a moment after the query. Waiting without end would
        # hang if Spark dropped the event.
        deadline = time.monotonic() + _COUNTS_SECONDS
        while not observation._jo.future().isCompleted():
            if time.monotonic() > deadline:
                return None
            time.sleep(0.05)
        return self._observation.get.get("rows")


def _refuse_clashes(joined: DataFrame, request: Request) -> None:
    """Stop before any work where the result would have two columns of one name."""
    times = Counter(name.lower() for name in joined.columns)
    clashing = [name for name in times if times[name] > 1]
    if clashing:
        raise analysis_error(
            f"Several inputs have a column named {', '.join(map(repr, sorted(clashing)))}: tell "
            f"them apart by --suffixes, as in --suffixes {suggested_suffixes(request.inputs)}"
        )


def _exists(spark: SparkSession, path: str) -> bool:
    jvm: Any = spark._jvm
    place = jvm.org.apache.hadoop.fs.Path(path)
    return bool(place.getFileSystem(spark._jsc.hadoopConfiguration()).exists(place))


def _writable(df: DataFrame, request: Request) -> DataFrame:
    """CSV has no arrays: there the indicator becomes text such as ``0;2``."""
    if request.output_format != "csv" or request.indicator is None:
        return df
    from pyspark.sql.functions import array_join, col

    name = request.indicator
    text = array_join(col(f"`{name.replace('`', '``')}`").cast("array<string>"), ";")
    return df.withColumn(name, text)


def _summarize(
    request: Request, rows: Sequence[int | None], exchanges: int, seconds: float
) -> None:
    paths = [each.path for each in request.inputs] + [request.output]
    width = max(len(path) for path in paths)
    counts = ["?" if each is None else f"{each:,}" for each in rows]
    places = max(len(count) for count in counts)
    print(f"Joined {len(request.inputs)} inputs on {', '.join(request.on)} ({request.how}):")
    for position, (path, count) in enumerate(zip(paths, counts)):
        what = f"input {position}" if position < len(request.inputs) else "output "
        print(f"  {what}  {path:<{width}}  {count:>{places}} rows")
    print(f"  {seconds:.1f} s, {exchanges} shuffles (Exchange) for {len(request.inputs)} inputs")
