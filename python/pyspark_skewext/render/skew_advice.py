"""Advice on skewed keys: sentences from the figures of a report."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median_high
from typing import TYPE_CHECKING

from pyspark_skewext.render.values import (
    bounds,
    bytes_shown,
    counted,
    numbers,
    percent,
    shown,
    times,
)

if TYPE_CHECKING:
    from pyspark_skewext.results.skew import Bounds, HotKey, KeySkew, SkewFigures

# A slowest task is worth a change above this multiple of the median.
_UNEVEN = 2.0
# The least share of rows with a null key that is worth a sentence.
_NULLS = 0.01
# A key with this share of the rows of a partition makes it large.
_REASON = 0.5
# A smaller partition takes no time, whatever the size of others.
_SMALL_BYTES = 16 * 1024 * 1024
# With an output above this multiple of the input, many keys are on both sides several times.
_LARGE_OUTPUT = 5
_THRESHOLD = "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes"
_FACTOR = "spark.sql.adaptive.skewJoin.skewedPartitionFactor"
_ADVISORY = "spark.sql.adaptive.advisoryPartitionSizeInBytes"


def advise(report: SkewFigures) -> list[str]:
    """Write the advice, the most important first."""
    inputs = [("df", report.df)] + ([("other", report.other)] if report.other else [])
    if not any(skew.rows for _, skew in inputs):
        return ["There are no rows."]
    said = _broadcast(report)
    for name, skew in inputs:
        said += (
            _nulls(report, name, skew)
            + _large_rows(report, name, skew)
            + _large(report, name, skew)
        )
    said += _output(report) + _few_keys(report)
    said += [
        f"{skew.untracked_rows:,} rows of {name} have keys of more than 4 KB, which are not in the "
        f"table; their partitions are counted."
        for name, skew in inputs
        if skew.untracked_rows
    ]
    if said:
        return said
    ratio = report.slowest.times
    compared = "" if ratio is None else f" (the slowest task has {times(ratio)} the median)"
    largest = max(max(skew.partition_bytes) for _, skew in inputs)
    if ratio is not None and ratio <= _UNEVEN and not any(_uneven(skew) for _, skew in inputs):
        why = "The rows are spread evenly enough"
    elif largest <= _SMALL_BYTES:
        why = f"All partitions are small (at most about {bytes_shown(largest)} in memory)"
    else:
        why = "No key is worth a change"
    return [f"{why}: there is nothing to do{compared}."]


def _names(names: Sequence[str]) -> str:
    return repr(names[0]) if len(names) == 1 else repr(list(names))


def _multi_full_join(report: SkewFigures) -> str:
    inputs = [
        name if skew is None or skew.keys == report.on else f"({name}, {_names(skew.keys)})"
        for name, skew in (("df", report.df), ("other", report.other))
    ]
    return f"skewext.multi_full_join({', '.join(inputs)}, on={_names(report.on)})"


def _uneven(skew: KeySkew) -> bool:
    return max(skew.partition_rows) > _UNEVEN * max(1, median_high(skew.partition_rows))


def _broadcast(report: SkewFigures) -> list[str]:
    """Without a shuffle, skew does not matter."""
    if report.other is None or not (_uneven(report.df) or _uneven(report.other)):
        return []
    limit = report.settings.broadcast_bytes
    both = {"df": report.df, "other": report.other}
    sizes = {name: skew.rows * skew.row_bytes for name, skew in both.items()}
    small = min(sizes, key=sizes.__getitem__)
    large = "df" if small == "other" else "other"
    if limit <= 0 or sizes[small] > limit or sizes[large] <= limit:
        return []
    is_same = report.df.keys == report.other.keys
    condition = _names(report.on) if is_same else f"{large}[...] == {small}[...]"
    return [
        f"{small} is small (about {bytes_shown(sizes[small])}), so broadcast it: nothing is "
        f"shuffled then, and the skew of {large} does not matter. For an inner join, or an outer "
        f"join that keeps the rows of {large}: {large}.join(F.broadcast({small}), {condition}, "
        f"...) with pyspark.sql.functions as F. Spark has no broadcast for a full outer join."
    ]


def _nulls(report: SkewFigures, name: str, skew: KeySkew) -> list[str]:
    most = max(skew.partition_null_rows)
    if skew.null_share < _NULLS or most <= _UNEVEN * median_high(skew.partition_rows) / 2:
        return []
    partition = skew.partition_null_rows.index(most)
    if skew.partition_bytes[partition] <= _SMALL_BYTES:
        return []
    columns = ["`" + each.replace("`", "``") + "`" for each in skew.keys]
    where = " AND ".join(f"{column} IS NOT NULL" for column in columns)
    said = (
        f"{skew.null_rows:,} rows of {name} ({percent(skew.null_share)}) have a NULL in the key, "
        f"and a shuffle sends {most:,} of them to partition {partition}, although they match "
        f"nothing. Inner joins drop them before the shuffle. "
    )
    said += "Where they have to come out, "
    if report.settings.skewext_splits:
        said += (
            f"{_multi_full_join(report)} and skewext.multi_join spread them over all tasks. Else "
        )
    return [said + f'join {name}.where("{where}") and add the other rows by unionByName.']


def _large(report: SkewFigures, name: str, skew: KeySkew) -> list[str]:
    """Advice on the largest partition."""
    # Nulls have advice of their own, and Spark may drop them.
    rows = [every - nulls for every, nulls in zip(skew.partition_rows, skew.partition_null_rows)]
    partition = max(range(len(rows)), key=rows.__getitem__)
    median = median_high(rows)
    is_small = skew.partition_bytes[partition] <= _SMALL_BYTES
    if is_small or rows[partition] <= _UNEVEN * max(1, median):
        return []
    compared = f"{times(rows[partition] / median)} the median" if median else "most others none"
    there = [key for key in report.hot_keys if key.partition == partition]
    hottest = max(there, key=lambda key: _rows_of(key, name).middle, default=None)
    if hottest is not None and _rows_of(hottest, name).middle > _REASON * rows[partition]:
        own = _rows_of(hottest, name)
        share = own.middle / max(1, skew.rows - skew.null_rows)
        said = (
            f"The key {shown(hottest.key)} alone has {bounds(own)} rows of {name} "
            f"({percent(share)}): partition {partition} has {rows[partition]:,} rows, {compared}. "
            f"More partitions do not help. "
        )
        return [said + _splitting(report, name, skew, partition)]
    if not median:
        # For too few keys there is other advice.
        return []
    return [
        f"Partition {partition} of {name} has {rows[partition]:,} rows, {compared}, but of several "
        f'keys: more partitions spread them, spark.conf.set("spark.sql.shuffle.partitions", '
        f"{2 * report.shuffle_partitions})."
    ]


def _large_rows(report: SkewFigures, name: str, skew: KeySkew) -> list[str]:
    """Advice on a partition that is large by the size of its rows, not by their number."""
    size = max(skew.partition_bytes)
    partition = skew.partition_bytes.index(size)
    median = median_high(skew.partition_bytes)
    if size <= max(_SMALL_BYTES, _UNEVEN * median):
        return []
    compared = f"{times(size / median)} the median" if median else "most others nothing"
    has = f"partition {partition} has {bytes_shown(size)}, {compared}"
    row = skew.largest_row
    if row is not None:
        which = "" if row.key is None else f" with the key {shown(row.key)}"
        return [
            f"One row of {name}{which} has {bytes_shown(row.bytes)}: {has}. A task reads a row "
            f"whole, so no split and no other number of partitions helps. Join without its large "
            f"column, and add that column by a second join of the few rows that need it."
        ]
    if _uneven(skew):
        return []
    return [
        f"The rows of {name} have different sizes: {has}, in {skew.partition_rows[partition]:,} "
        f'rows. More partitions spread them, spark.conf.set("spark.sql.shuffle.partitions", '
        f"{2 * report.shuffle_partitions})."
    ]


def _rows_of(key: HotKey, name: str) -> Bounds:
    return key.rows if name == "df" or key.other_rows is None else key.other_rows


def _splitting(report: SkewFigures, name: str, skew: KeySkew, partition: int) -> str:
    size = skew.partition_bytes[partition]
    about = f"about {bytes_shown(size)} in memory"
    settings = report.settings
    if size > skew.split_above_bytes:
        return f"It has {about}. " + _who_splits(report, size, skew.slice_bytes)
    median = median_high(skew.partition_bytes)
    lower = f"{max(1, size // 2 // 1024**2)}MB"
    steps = [f'spark.conf.set("{_THRESHOLD}", "{lower}")']
    if size <= settings.skewed_factor * median:
        factor = max(1, int(size / max(1, median) / 2))
        steps.append(f'spark.conf.set("{_FACTOR}", {factor})')
    # Below the threshold, one slice of the advisory size may have all rows.
    if skew.slice_bytes > size // 2:
        steps.append(f'spark.conf.set("{_ADVISORY}", "{lower}")')
    said = (
        f"It has {about}, which adaptive execution takes for normal: it splits from "
        f"{bytes_shown(skew.split_above_bytes)} on. To have it split, {', '.join(steps)}. "
    )
    return said + _who_splits(report, size, min(skew.slice_bytes, max(1, size // 2)))


def _who_splits(report: SkewFigures, size: int, slice_bytes: int) -> str:
    pieces = max(2, round(size / max(1, slice_bytes)))
    if report.settings.skewext_splits:
        return (
            f"Adaptive execution makes about {pieces} tasks of it, with skewext in joins of any "
            f"kind (docs/skew.md has the exceptions), also in {_multi_full_join(report)}."
        )
    if report.settings.spark_splits:
        return (
            "Spark itself splits it in inner joins and on the side that an outer join keeps. For "
            "full outer joins and the rest, start the session with skewext.configure(builder), and "
            "leave spark.skewext.enabled on."
        )
    return (
        "It is split only in adaptive execution: "
        'spark.conf.set("spark.sql.adaptive.enabled", True) and '
        'spark.conf.set("spark.sql.adaptive.skewJoin.enabled", True).'
    )


def _output(report: SkewFigures) -> list[str]:
    """Advice on keys with many rows on both sides."""
    if report.output is None or report.other is None:
        return []
    read = report.df.rows + report.other.rows
    products = list(map(_product, report.hot_keys))
    most = max(products, default=0)
    is_large = most > read / 10
    if report.output.rows <= (1 if is_large else _LARGE_OUTPUT) * read:
        return []
    said = (
        f"A join gives about {report.output.rows:,} rows for {read:,} that it reads, as keys have "
        f"several rows on both sides"
    )
    key = report.hot_keys[products.index(most)] if is_large else None
    if key is not None and key.output_rows is not None and key.other_rows is not None:
        said += (
            f": the key {shown(key.key)} has {bounds(key.rows)} rows in df and "
            f"{bounds(key.other_rows)} in other, which makes {bounds(key.output_rows)}"
        )
    said += (
        f". If that is not what you want, bring one side to one row a key first: "
        f"other.dropDuplicates({list(report.other.keys)!r}), or an aggregate by the key."
    )
    output = report.output
    sizes = enumerate(rows * output.row_bytes for rows in output.partition_rows)
    skewed = [partition for partition, size in sizes if size > output.split_above_bytes]
    if skewed and report.settings.skewext_splits:
        said += (
            f" If it is, the extension divides what comes out of partition {numbers(skewed)} among "
            f"several tasks (for Spark's own joins with spark.skewext.skew.outputSkew.mode=all)."
        )
    return [said]


def _product(key: HotKey) -> float:
    """Its rows in the join; 0 unless it certainly has several rows on both sides."""
    if key.other_rows is None or key.output_rows is None:
        return 0
    return key.output_rows.middle if min(key.rows.low, key.other_rows.low) > 1 else 0


def _few_keys(report: SkewFigures) -> list[str]:
    keys = report.df.distinct_bounds.high
    is_small = sum(report.df.partition_bytes) <= _SMALL_BYTES
    if keys < report.shuffle_partitions and not is_small:
        return [
            f"There are {keys:,} different keys for {report.shuffle_partitions:,} partitions, so "
            f"at least {counted(report.shuffle_partitions - keys, 'task')} without a key. A key "
            f"of more columns would spread them, where the query allows it."
        ]
    return []
