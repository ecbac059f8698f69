"""Random queries of joins: the extension, Spark without it, and DuckDB agree."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from amount import TEST_ALL
from pyspark.sql import SparkSession
from random_sql.engines import Engines
from random_sql.hunt import examples, hunt
from random_sql.reduce import Example, reduced
from random_sql.scope import pruned, tables_of
from random_sql.tree import FULL, SPARK, Join, Select, leaves, statements

# `make test-random` has as many as one likes.
QUERIES = 200 if TEST_ALL else 40
SEED = 20240229


@pytest.fixture
def engines(spark: SparkSession, tmp_path: Path) -> Iterator[Engines]:
    found = Engines(spark, tmp_path)
    yield found
    found.close()


def test_random_queries(engines: Engines) -> None:
    found = hunt(engines, SEED, QUERIES)
    assert not found.failures, "\n".join(found.failures)
    # It is no proof if hardly anything was compared, or nothing of it was ours.
    assert found.compared >= 0.9 * QUERIES, str(found)
    assert found.rows >= 2 * QUERIES, str(found)
    assert found.rewritten >= 0.4 * found.compared, str(found)
    assert max(found.inputs) >= 5, str(found)


class Silent(Engines):
    """Engines that have no tables and no answers: queries alone."""

    def __init__(self) -> None:
        pass

    def load(self, tables: object) -> None:
        pass


def test_queries_name_only_what_there_is() -> None:
    for example, label in examples(Silent(), seed=1, count=300):
        names = {table.name: tuple(c.name for c in table.columns) for table in example.tables}
        kept = pruned(example.query, names)
        assert kept is not None and kept.body == example.query.body, label


def test_a_seed_gives_the_same_queries() -> None:
    one, other = (
        [statements(e.query, SPARK) for e, _ in examples(Silent(), seed=5, count=30)]
        for _ in range(2)
    )
    assert one == other
    assert one != [statements(e.query, SPARK) for e, _ in examples(Silent(), seed=6, count=30)]


def test_an_example_is_made_small() -> None:
    """Of large queries there stays what is asked for: here a full outer join of t3."""

    def fails(example: Example) -> bool:
        found = joins(example.query.body)
        return any(j.kind == FULL and "t3" in tables_read(j) for j in found)

    tried = 0
    for example, _ in examples(Silent(), seed=2, count=200):
        if tried < 10 and fails(example):
            tried += 1
            small = reduced(example, fails, tries=2000)
            assert len(joins(small.query.body)) == 1
            assert len(small.query.body.items) == 1
            assert small.query.withs == () and not small.query.body.where
            assert not small.settings and len(small.tables) <= 2
            assert all(table.rows == () for table in small.tables)
            assert tables_of(small.query) == {table.name for table in small.tables}
    assert tried == 10


def joins(block: Select) -> list[Join]:
    """All joins of a block, also of the queries in it."""
    found, todo = [], [block.source]
    while todo:
        source = todo.pop()
        if isinstance(source, Join):
            found.append(source)
            todo += [source.left, source.right]
        elif isinstance(source.source, Select):
            todo.append(source.source.source)
    return found


def tables_read(join: Join) -> set[str]:
    return {str(leaf.source) for leaf in leaves(join) if isinstance(leaf.source, str)}
