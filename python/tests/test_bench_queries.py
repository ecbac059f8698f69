"""The benchmarks with queries in SQL compare answers and plans, and their queries run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from harness import (
    blocks,
    cliffs,
    db_benchmark,
    engines,
    or_joins,
    question_worker,
    ranges,
    skewed_tpch,
    task_report,
    tpc,
    tpch_joins,
    turns_report,
)
from harness.pool import Pool
from harness.questions import WAYS, Question, described, family, is_join
from harness.sessions import SessionSpec
from harness.turns import Turns, same_answer
from harness.worker import Session
from pyspark.sql import SparkSession
from stock import kept

_JOIN = Question("join", "a join", "SELECT {hint} 1", Path("data"), hint="b", one_join=True)
_OURS = {"MultiFullJoin": 1}


class Sessions(Pool):
    """In place of sessions: the answers and plans of ways."""

    def __init__(self, checksums: dict[str, str], joins: dict[str, dict[str, int]]) -> None:
        self._checksums = checksums
        self._joins = joins
        self.turns: list[str] = []

    def ask(self, kind: str, command: Callable[..., Any], *arguments: Any) -> Any:
        if command is question_worker.answer:
            return {
                "rows": 5,
                "checksum": self._checksums.get(kind, "17"),
                "floats": [],
                "seconds": 1,
            }
        self.turns.append(kind)
        seconds = {"stock": 4.0, "ours": 2.0}[kind]
        return {"seconds": seconds, "cpu_seconds": 1.0, "joins": self._joins[kind]}


def measured(sessions: Sessions, question: Question = _JOIN) -> dict[str, Any]:
    ways = [WAYS["stock"], WAYS["ours"]]
    return Turns(sessions, ways, rounds=2, warm_up=True).measure(question, str)


def test_ways_take_turns_and_pairs_are_compared() -> None:
    sessions = Sessions({}, {"stock": {"SortMergeJoin": 1}, "ours": _OURS})
    found = measured(sessions)
    assert found["problems"] == []
    assert sessions.turns == ["stock", "ours", "ours", "stock", "stock", "ours"]
    assert turns_report.pair_ratio(found, "stock", "ours") == 2
    totals = turns_report.totals({"one": found, "two": found}, "stock", "ours")
    assert totals is not None
    assert (totals["queries"], totals["stock_seconds"], totals["ours_seconds"]) == (2, 8, 4)
    assert (totals["ratio"], totals["geometric_mean"]) == (2, 2)
    assert totals["slower_than_5_percent"] == []
    assert "one" in turns_report.describe({"one": found})


def test_another_answer_or_plan_is_a_problem() -> None:
    found = measured(Sessions({"ours": "18"}, {"stock": _OURS, "ours": {"SortMergeJoin": 1}}))
    assert sorted(found["problems"]) == [
        "join: ours and stock give different answers: 5, 5 rows",
        "join: ours: the plan has 1 SortMergeJoin for ours",
        "join: stock: the plan has joins of ours: 1 MultiFullJoin",
    ]


def test_the_time_of_stock_is_estimated_by_pairs_of_a_smaller_query() -> None:
    def found(pairs: int, smaller: str, **medians: float) -> dict[str, Any]:
        ways = {way: {"median": seconds} for way, seconds in medians.items()}
        return {"pairs": pairs, "smaller": smaller, "ways": ways}

    questions = {
        "small": found(100, "", stock=3.0, ours=1.0),
        "large": found(2000, "small", ours=2.0),
        "alone": found(2000, "missing", ours=2.0),
    }
    (line,) = turns_report.estimates(questions)
    assert line == "large: 60 s of stock by the pairs of small, 30 times ours"


def test_answers_may_differ_in_the_last_digits_of_floats() -> None:
    def found(*floats: float | None) -> dict[str, Any]:
        return {"rows": 3, "checksum": "7", "floats": list(floats)}

    assert same_answer(found(1e-12, 100.0), found(0.0, 100.0))
    assert not same_answer(found(1.0, 100.0), found(1.1, 100.0))
    assert same_answer(found(None, None), found(None, None))
    assert not same_answer(found(None, None), found(1.0, 1.0))
    assert same_answer(found(float("nan"), 1.0), found(float("nan"), 1.0))
    assert not same_answer(found(), {**found(), "rows": 4})


def test_joins_by_who_made_them() -> None:
    assert [is_join(name) for name in ("CartesianProduct", "OursSplit", "Sort")] == [1, 1, 0]
    names = ("SortMergeJoin", "CometHashJoin", "MultiFullJoin", "OursSplit")
    assert [family(name) for name in names] == ["SortMergeJoin", "comet", "ours", "ours"]
    assert described({}) == "no join"


def test_only_a_limit_at_the_end_goes() -> None:
    inner = "SELECT * FROM (SELECT 1 LIMIT 5) ORDER BY 1"
    assert tpc.without_limit(f"{inner}\nLIMIT 100") == f"{inner}\n"
    assert tpc.without_limit(inner) == inner


def test_a_folder_of_another_scale_factor_is_refused(tmp_path: Path) -> None:
    queries = tpc.generate(tpc.TPCH, 0.001, tmp_path)
    assert sorted(queries) == list(range(1, 23))
    assert tpc.generate(tpc.TPCH, 0.001, tmp_path) == queries
    with pytest.raises(ValueError):
        tpc.generate(tpc.TPCH, 1, tmp_path)


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """The session of the tests, as that of a worker."""
    Session.spark = spark
    with kept(spark, _changed()):
        try:
            yield spark
        finally:
            question_worker.close()


def _changed() -> set[str]:
    questions = [*cliffs.cliffs(Path(), {}), *tpch_joins.joins(Path())]
    return {key for q in questions for way in WAYS.values() for key in q.settings(way)}


@pytest.mark.slow
def test_single_joins_have_the_plans_of_their_ways(session: SparkSession, tmp_path: Path) -> None:
    tpc.generate(tpc.TPCH, 0.001, tmp_path)
    for question in tpch_joins.joins(tmp_path):
        answers = []
        for way in (WAYS["stock"], WAYS["stock-hash"], WAYS["ours"]):
            conf = question.settings(way)
            answers.append(question_worker.answer(question.text(way), tmp_path, conf, False))
            found = question_worker.run(question.text(way), tmp_path, conf, False)
            assert question.problem(way, found["joins"]) is None, found
        assert answers[0]["rows"] > 0
        assert same_answer(answers[0], answers[1]) and same_answer(answers[0], answers[2])


@pytest.mark.slow
@pytest.mark.parametrize("of", ["ranges", "or joins"])
def test_all_ways_give_the_same_answer(
    session: SparkSession, tmp_path: Path, of: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Session, "spec", SessionSpec(tmp_path, 1, "1g"), raising=False)
    monkeypatch.setattr(engines, "answer_file", lambda _, engine: str(tmp_path / engine))
    if of == "ranges":
        questions = ranges.questions(ranges.generate(0.02, tmp_path), {})
    else:
        questions = or_joins.joins(or_joins.generate(0.02, tmp_path), 0.02, {})
    rows: list[int] = []
    for question in questions:
        answers = {
            way: question_worker.answer(
                question.text(WAYS[way]), tmp_path, question.settings(WAYS[way]), False
            )
            for way in ("by-hand", "ours")
        }
        answers["duckdb"] = engines.answer("duckdb", question.sql, tmp_path, {}, False)
        rows.append(answers["ours"]["rows"])
        for way, found in answers.items():
            assert same_answer(found, answers["ours"]), (question, way, answers)
    assert sum(rows) > 1000, rows


@pytest.mark.slow
def test_spark_changes_the_plans_of_cliffs_late(session: SparkSession, tmp_path: Path) -> None:
    cliffs.generate(0.01, tmp_path)
    stock = WAYS["stock"]
    # Of this size Spark would know before that it broadcasts.
    limits = {
        "spark.sql.autoBroadcastJoinThreshold": "20000",
        "spark.sql.optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold": "1b",
    }
    joins = {}
    for question in cliffs.cliffs(tmp_path, {}):
        conf = {**question.settings(stock), **limits}
        if "bloom" in question.name:
            conf["spark.sql.autoBroadcastJoinThreshold"] = "-1"
        found = question_worker.run(question.sql, tmp_path, conf, question.analyzed)
        joins[question.name] = found["joins"]
        if "broadcasts" in question.name:
            assert set(found["joins"]) == {"BroadcastHashJoin"}, found
        plan: Any = session.sql(question.sql)
        text = plan._jdf.queryExecution().optimizedPlan().toString()
        if "bloom" in question.name:
            assert "might_contain" in text
        if "reordering" in question.name:
            # Bottom left are the first two tables: the filtered one has come to the front.
            assert text.rindex("d5") < text.rindex("d6")


def test_blocks_have_their_rows(tmp_path: Path) -> None:
    import duckdb

    blocks.generate(tmp_path, columns=6, rows=50, files=3)
    (counts,) = duckdb.sql(
        f"SELECT count(*), count(DISTINCT k), count(DISTINCT v1), count(small_v) "
        f"FROM '{tmp_path}/big/*.parquet' LEFT JOIN '{tmp_path}/small/*.parquet' ON k = small_k"
    ).fetchall()
    assert counts == (150, 150, 150, 100)
    assert blocks.width(2) == 16 and blocks.width(6) == 8 + 8 + 8 + 4 + 16 + 8


def test_the_table_of_tasks_compares_with_stock() -> None:
    stock = {"exchange": "Spark's", "join": "SortMergeJoin", "rows": 0, "seconds": 2.0}
    ours = {"exchange": "columns", "join": "MultiFullJoin", "rows": 0, "seconds": 0.5}
    shapes = {"map": {"ways": {"stock": stock, "ours": ours, "ours-rows": {"failed": "died"}}}}
    _, *table = task_report.rows(shapes)
    assert [row[:3] for row in table] == [
        ["map", "stock", "Spark's"],
        ["map", "ours", "columns"],
        ["map", "ours-rows", "died"],
    ]
    assert [row[-2] for row in table] == ["1.00", "4.00", ""]


def test_nine_keys_in_ten_of_db_benchmark_match(session: SparkSession, tmp_path: Path) -> None:
    data = db_benchmark.generate(0.01, tmp_path)
    rows = {
        each.name: question_worker.answer(each.sql, data, each.conf, analyzed=False).get("rows")
        for each in db_benchmark.joins(data, {})
    }
    assert rows["small-inner"] == rows["medium-left"] == 10_000
    assert (rows["big-inner"], rows["big-full"], rows["chain-full"]) == (9_000, 11_000, 11_000)
    # One of ten keys has no match.
    assert rows["medium-inner"] == rows["medium-string"]
    assert 8_000 < rows["medium-inner"] < 9_800


def test_a_larger_exponent_skews_the_foreign_keys_of_tpch(
    session: SparkSession, tmp_path: Path
) -> None:
    even = tmp_path / "even"
    queries = tpc.generate(tpc.TPCH, 0.001, even)
    most = []
    for z in skewed_tpch.EXPONENTS:
        data = skewed_tpch.generate(tmp_path / f"z{z:g}", z, even)
        lines, offers = (f"'{folder}.parquet'" for folder in (data / "lineitem", even / "partsupp"))
        assert _number(f"count(*) FROM {lines}") == 6005
        same = "ps_partkey = l_partkey AND ps_suppkey = l_suppkey"
        assert _number(f"count(*) FROM {lines} ANTI JOIN {offers} ON {same}") == 0
        grouped = f"SELECT count(*) AS n FROM {lines} GROUP BY l_partkey"
        most.append(_number(f"max(n) FROM ({grouped})"))
        for question in skewed_tpch.questions(data, z, queries, {})[:2]:
            found = question_worker.answer(question.sql, data, question.conf, analyzed=False)
            assert "rows" in found, found
        question_worker.close()
    assert most[0] < most[1] < most[2]


def test_a_penalty_is_a_ratio_of_times_with_and_without_skew() -> None:
    def of(stock: float, ours: float) -> dict[str, Any]:
        balance = {"ratio": 3.0}
        ways = {"stock": {"median": stock, "balance": balance}, "ours": {"median": ours}}
        return {"ways": ways}

    queries = dict.fromkeys(range(1, 23), "")
    names = [question.name for question in skewed_tpch.questions(Path(), 0, queries, {})]
    groups = {
        skewed_tpch.group(z): {
            name.replace("-z0", f"-z{z:g}"): of(2 * (1 + z), 1 + z / 2) for name in names
        }
        for z in skewed_tpch.EXPONENTS
    }
    _, first, *_ = skewed_tpch.penalties(groups)
    assert first[1:] == ["2.00", "1.50", "2.00", "1.00", "1.25", "1.50", "3.0", ""]


def _number(query: str) -> int:
    ((number,),) = duckdb.sql(f"SELECT {query}").fetchall()
    return int(number)
