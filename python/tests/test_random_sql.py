"""Random queries of joins: the extension, Spark without it, and DuckDB agree."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from amount import TEST_ALL, TEST_SLOW
from pyspark.sql import SparkSession
from random_sql.coverage import (
    NESTED,
    OPERATORS,
    SETTINGS,
    SINKS,
    SOURCES,
    SURROUNDINGS,
    Coverage,
    Tally,
    merged,
)
from random_sql.engines import Engines
from random_sql.forms import CACHES, CHECKPOINTS, FORMS
from random_sql.found import Found
from random_sql.hunt import Plan, examples, hunt
from random_sql.reduce import Example, reduced
from random_sql.scope import pruned, tables_of
from random_sql.sinks import SINKS as ALL_SINKS
from random_sql.tree import FULL, SPARK, Block, Both, Join, Leaf, Select, statements

# `make fuzz` runs any number.
QUERIES = 200 if TEST_ALL else 60 if TEST_SLOW else 36
SEED = 1


@pytest.fixture
def engines(spark: SparkSession, tmp_path: Path) -> Iterator[Engines]:
    found = Engines(spark, tmp_path)
    yield found
    found.close()


def test_random_queries(engines: Engines) -> None:
    found = hunt(engines, Plan(SEED, QUERIES))
    assert not found.failures, "\n".join(found.failures)
    # It is no proof if hardly anything was compared, or nothing of it was ours.
    assert found.compared >= 0.9 * QUERIES, str(found)
    assert found.rows >= 2 * QUERIES, str(found)
    assert found.rewritten >= 0.4 * found.compared, str(found)
    assert found.split >= 0.02 * found.compared, str(found)
    assert max(found.inputs) >= 5, str(found)
    # Nor if the joins of ours had all of their rows from the same source, or gave them to one sink.
    kinds = found.coverage.kinds
    assert len(kinds(SURROUNDINGS)) >= 15, found.coverage.table()
    assert kinds(OPERATORS) >= {"exchange by column", "split join"}
    assert kinds(OPERATORS) & {"as-of join", "latest rows"}, found.coverage.table()
    assert len(kinds(NESTED)) >= 3, found.coverage.table()
    assert sum(kind.startswith("evaluation") for kind in kinds(SETTINGS)) >= 3
    if TEST_ALL:
        assert kinds(SOURCES) >= {*FORMS, *CACHES, *CHECKPOINTS}, found.coverage.table()
        assert kinds(SINKS) >= set(ALL_SINKS), found.coverage.table()
    else:
        share = QUERIES / 60
        forms, caches = kinds(SOURCES) & set(FORMS), kinds(SOURCES) & set(CACHES)
        assert len(forms) >= 0.7 * share * len(FORMS), found.coverage.table()
        assert len(caches) >= 4 * share, found.coverage.table()
        assert len(kinds(SINKS)) >= 0.4 * share * len(ALL_SINKS), found.coverage.table()


class Silent(Engines):
    """Engines that have no tables and no answers: queries alone."""

    def __init__(self) -> None:
        pass

    def load(self, tables: object) -> None:
        pass


def test_queries_name_only_existing_columns() -> None:
    for example, label in examples(Silent(), Plan(1, 300)):
        names = {table.name: tuple(c.name for c in table.columns) for table in example.tables}
        kept = pruned(example.query, names)
        assert kept is not None and kept.body == example.query.body, label


def test_a_seed_gives_the_same_queries() -> None:
    one, other = (
        [statements(e.query, SPARK) for e, _ in examples(Silent(), Plan(5, 30))] for _ in range(2)
    )
    assert one == other
    assert one != [statements(e.query, SPARK) for e, _ in examples(Silent(), Plan(6, 30))]


def test_an_example_can_be_run_alone() -> None:
    whole = [(example, label) for example, label in examples(Silent(), Plan(5, 30))]
    alone = [next(examples(Silent(), Plan(5, 1, first=n))) for n in (0, 11, 12, 29)]
    assert alone == [whole[n] for n in (0, 11, 12, 29)]
    assert "--first 29 --count 1" in alone[-1][1]


def test_counters_of_two_runs_are_added(tmp_path: Path) -> None:
    """By the files of both, as campaigns in several processes write them."""
    one, other = Found(), Found(compared=2, rewritten=1)
    one.coverage.count({SOURCES: ["csv", "csv"], SINKS: ["orc"]}, Tally(1, 1, 0, 0))
    other.coverage.count({SOURCES: ["csv"]}, Tally(1, 1, 1, 1))
    files = [tmp_path / "one.json", tmp_path / "other.json"]
    for file, found in zip(files, (one, other)):
        file.write_text(json.dumps(found.to_dict("3.5.9", seed=7)))
    both = merged(files)
    assert both["compared"] == 2 and both["seeds"] == [7, 7] and both["spark"] == ["3.5.9"]
    rows = Coverage.from_dict(both["coverage"]).rows()
    assert rows == [("source", "csv", 2, 2, 1, 1), ("sink", "orc", 1, 1, 0, 0)]


def test_an_example_is_made_small() -> None:
    """Of large queries there stays what is asked for: here a full outer join of t3."""

    def fails(example: Example) -> bool:
        found = joins(example.query.body)
        return any(j.kind == FULL and "t3" in sides(j) for j in found)

    tried = 0
    for example, _ in examples(Silent(), Plan(2, 200)):
        if tried < 10 and fails(example):
            tried += 1
            small = reduced(example, fails, tries=2000)
            assert len(joins(small.query.body)) == 1
            assert isinstance(small.query.body, Select) and len(small.query.body.items) == 1
            assert small.query.withs == () and not small.query.body.where
            assert not small.settings and len(small.tables) <= 2 and small.sink == "collect"
            assert all(table.rows == table.layers == () for table in small.tables)
            assert tables_of(small.query) == {table.name for table in small.tables}
    assert tried == 10


def joins(block: Block) -> list[Join]:
    """All joins of a query, also of the queries in it."""
    if isinstance(block, Both):
        return joins(block.left) + joins(block.right)
    found, todo = [], [block.source]
    while todo:
        source = todo.pop()
        if isinstance(source, Join):
            found.append(source)
            todo += [source.left, source.right]
        elif not isinstance(source.source, str):
            found += joins(source.source)
    return found


def sides(join: Join) -> set[str]:
    """The tables that it joins, not those of joins below it."""
    return {str(side.source) for side in (join.left, join.right) if isinstance(side, Leaf)}
