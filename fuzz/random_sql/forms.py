"""Names of all sources: where rows are stored, and the layers between them and the table."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from random_sql.formats import FILE_SOURCES

#: Where rows are stored, and how often. An inline relation is one that the optimizer looks into.
FORMS = {
    "values": 5,
    "rdd": 3,
    "range": 2,
    **FILE_SOURCES,
    "table": 1,
    "buckets": 2,
    "our buckets": 1,
}
#: Forms that take a Python worker, and pandas.
PANDAS_FORMS = {"mapInPandas": 1, "mapInArrow": 1}

#: Tables that are read from several files, so that several tasks read them.
IN_FILES = ("parquet", "parquet", "parquet", "orc", "csv", "rdd", "table")
#: The join key is a column of folders.
BY_FOLDER = ("parquet, partitioned", "orc, partitioned", "iceberg, partitioned")
#: Bucketed by the join key.
BY_BUCKET = ("buckets", "our buckets")

CACHES = (
    "persist MEMORY_ONLY",
    "persist MEMORY_AND_DISK",
    "persist MEMORY_AND_DISK_DESER",
    "persist DISK_ONLY",
    "persist OFF_HEAP",
    "CACHE TABLE",
    "CACHE LAZY TABLE",
)
CHECKPOINTS = ("checkpoint", "localCheckpoint")
#: Layers of which one decides on the others, and how often.
MAIN_LAYERS = {
    "": 22,
    **dict.fromkeys(CACHES, 2),
    **dict.fromkeys(CHECKPOINTS, 1),
    "filter": 2,
    "rename": 1,
    "project": 1,
    "view": 1,
    "union": 1,
    "repartition": 1,
    "repartition by key": 1,
    "sort": 1,
    "sample": 1,
    "limit": 1,
    "python udf": 1,
}
#: What people put above a table that is cached.
_ABOVE = ("filter", "filter", "filter", "project", "project", "rename", "view")


def layers(random: Random, main: str, python: bool) -> tuple[str, ...]:
    """A stack of layers around the main one, the lowest first."""
    if not main:
        return ()
    below: list[str] = []
    above: list[str] = []
    if random.random() < 0.3:
        below = [random.choice(("filter", "project", "rename", "union", "repartition"))]
    if main in CACHES:
        above = random.choices(_ABOVE, k=random.choice((0, 1, 1, 2, 2, 3)))
        if python and random.random() < 0.06:
            above.append("python udf")
    elif random.random() < 0.4:
        above = random.choices((*_ABOVE, *CACHES[:3]), k=random.choice((1, 2)))
    stack = (*below, main, *above)
    # Names change once, and junk goes once.
    once = [
        layer
        for place, layer in enumerate(stack)
        if layer not in ("rename", "project", "python udf") or layer not in stack[:place]
    ]
    return tuple(layer for layer in once if python or layer != "python udf")


def kinds(form: str, stack: Sequence[str]) -> list[str]:
    """Everything that a table's rows go through, as counters name it."""
    names = [form, *stack]
    for below, layer in zip(stack, stack[1:]):
        if below in CACHES and layer not in CACHES:
            names.append(f"{layer} over a cache")
    return names
