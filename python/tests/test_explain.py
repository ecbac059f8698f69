"""What `explain` says, in Python: objects, text, HTML and errors."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PySparkRuntimeError, PySparkTypeError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from stock import setting

from pyspark_skewext import Explanation, _jvm, explain, multi_full_join
from pyspark_skewext.results import filled
from pyspark_skewext.results.explanation import Origin


@pytest.fixture(scope="module")
def joined(spark: SparkSession) -> DataFrame:
    inputs = [spark.range(n, n + 9).withColumn(f"v{n}", sf.lit(n)) for n in range(3)]
    return multi_full_join(*inputs, on="id").where("id > 4")


def test_object(joined: DataFrame) -> None:
    explanation = explain(joined)
    (join,) = explanation.joins
    assert explanation.notes == []
    assert join.origin == Origin("asked for", "one operator", None, None)
    assert [each.role for each in join.inputs] == ["optional"] * 3
    assert all("id > 4" in each.pushed for each in join.inputs)
    assert join.execution is not None and join.execution.exchanges == 3
    assert join.skew[0].status == "not run"
    assert json.loads(explanation.to_json()) == explanation.to_dict()


def test_parts_by_name_still_work_and_warn(joined: DataFrame) -> None:
    explanation = explain(joined)
    with pytest.warns(DeprecationWarning, match=r"use .origin instead of \['origin'\]"):
        origin = explanation.joins[0]["origin"]
    assert origin is explanation.joins[0].origin


def test_text_and_html(spark: SparkSession, joined: DataFrame) -> None:
    explanation = explain(joined)
    assert str(explanation) == repr(explanation)
    assert str(explanation).startswith("Join 1: full outer join of 3 inputs on [id]")
    page = explanation._repr_html_()
    assert page.startswith("<div><p><b>Join 1: full outer join of 3 inputs on [id]</b></p><pre ")
    # Jupyter's own style has a font whose columns are not aligned.
    assert "font-family:monospace" in page
    assert "pushed: id &gt; 4" in page and "asked for: one operator" in page
    named = spark.range(3).withColumnRenamed("id", "<b>x")
    assert "<b>x" not in explain(multi_full_join(named, named, on="<b>x"))._repr_html_()
    nothing = explain(spark.range(3))
    assert str(nothing) == "No joins."
    assert nothing._repr_html_() == "<div><p><b>No joins.</b></p></div>"


def test_nothing_is_run(spark: SparkSession) -> None:
    one = spark.range(3).withColumn("x", sf.expr("if(id >= 0, raise_error('run'), 0)"))
    df = multi_full_join(one, spark.range(3), on="id")
    before = explain(df)
    with pytest.raises(Exception, match="run"):
        df.collect()
    assert explain(df).joins[0].title == before.joins[0].title


@pytest.mark.classic("the server plans a query anew for explain")
def test_of_a_query_that_has_run(spark: SparkSession) -> None:
    df = multi_full_join(spark.range(9), spark.range(9), on="id")
    df.collect()
    (skew,) = explain(df).joins[0].skew
    assert (skew.status, skew.text) == ("whole", "no partition is skewed")


def test_switched_off(spark: SparkSession) -> None:
    with setting(spark, "spark.skewext.enabled", False):
        explanation = explain(multi_full_join(spark.range(3), spark.range(3), on="id"))
    assert explanation.notes == ["spark.skewext.enabled is false, so Spark plans all joins alone."]
    assert explanation.joins[0].origin.status == "switched off"
    assert str(explanation).startswith("spark.skewext.enabled is false")
    assert "<b>spark.skewext.enabled is false" in explanation._repr_html_()


@pytest.mark.parametrize("given", [None, "t"])
def test_not_a_dataframe(given: Any) -> None:
    with pytest.raises(PySparkTypeError, match=f"not {type(given).__name__}"):
        explain(given)


def test_errors_of_the_query_pass(spark: SparkSession) -> None:
    with pytest.raises(AnalysisException, match="streaming"):
        explain(spark.readStream.format("rate").load())


@pytest.mark.classic("is about the jar in this process")
def test_jar_of_another_version(joined: DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_jvm, "__version__", "9.9.9")
    with pytest.raises(PySparkRuntimeError, match=r"9\.9\.9"):
        explain(joined)


@pytest.mark.classic("is about the jar in this process")
def test_session_without_the_jar(joined: DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_jvm, "facade_of", lambda _: None)
    # As in a JVM whose class loader takes no jar.
    monkeypatch.setattr(_jvm, "facade", lambda _: None)
    explanation = explain(joined)
    assert explanation.joins == []
    assert "skewext is not loaded in this session" in str(explanation)


def origin(status: str = "asked for", **more: Any) -> dict[str, Any]:
    return {"status": status, "text": "one operator", "detail": None, "advice": None, **more}


def an_input(position: int, source: str, **more: Any) -> dict[str, Any]:
    none: dict[str, Any] = {"key": [], "filters": [], "pushed": [], "read": []}
    nameless = {"position": position, "role": None, "narrowed_from": None, "source": source}
    return {**nameless, **none, **more}


def skew(status: str, text: str, **more: Any) -> dict[str, Any]:
    return {"operator": "MultiFullJoin", "status": status, "text": text, "advice": None, **more}


def a_join(number: int, title: str, **more: Any) -> dict[str, Any]:
    join = {"number": number, "place": "query", "title": title, "operators": ["MultiFullJoin"]}
    return {**join, "origin": origin(), "inputs": [], "execution": None, "skew": [], **more}


def a_scan(number: int, **more: Any) -> dict[str, Any]:
    scan = {"number": number, "place": "query", "source": "parquet t", "by": ["a", "b"]}
    why = {"why": "no condition", "advice": None}
    return {**scan, "buckets": 8, "read": 2, "partitions": None, **why, **more}


CONTENT: dict[str, Any] = {
    "notes": ["A note.", "Another one."],
    "joins": [
        a_join(
            1,
            "full outer join of 3 inputs on [k]",
            inputs=[
                an_input(0, "parquet t0", role="optional", key=["k", "l"]),
                an_input(
                    *(1, "t1"),
                    role="required",
                    narrowed_from="optional",
                    key=["x"],
                    filters=["x > 5", "y = '<b>'"],
                    pushed=["x > 5"],
                    read=["partitions: 3 of 8"],
                ),
                an_input(2, "join 2", role="excluded", filters=["z"]),
            ],
            execution={
                **{"rows": "hash", "null_keys": "spread"},
                **{"exchanges": 1, "bulk": 1, "columns": 0, "by_row": [], "counted": 0},
            },
            skew=[skew("split", "1 partition in 4 pieces")],
        ),
        a_join(
            2,
            "SortMergeJoin inner [a = b]",
            place="cached data",
            operators=["SortMergeJoin", "MultiFullJoin"],
            origin=origin("not rewritten", detail="2 inputs", advice="Do that."),
            inputs=[an_input(0, "t"), an_input(1, "t2")],
            skew=[
                skew("whole", "it streams", advice="Do this."),
                skew("whole", "it streams", advice="Do this."),
                skew("not run", "not yet", operator="SortMergeJoin"),
            ],
        ),
        a_join(
            3,
            "no shuffle",
            place="subquery",
            execution={
                **{"rows": "merged", "null_keys": "none"},
                **{"exchanges": 0, "bulk": 0, "columns": 0, "by_row": ["from rows"], "counted": 0},
            },
            skew=[skew("not looked at", "off")],
        ),
        a_join(
            4,
            "in a command",
            place="command",
            execution={
                **{"rows": "merged", "null_keys": "none"},
                **{
                    "exchanges": 2,
                    "bulk": 1,
                    "columns": 1,
                    "by_row": ["from rows", "Coalesce below"],
                    "counted": 1,
                },
            },
        ),
    ],
    "scans": [
        a_scan(1, partitions=2, advice="Write it anew."),
        a_scan(2, place="cached data"),
    ],
}

TEXT = """
A note.

Another one.

Join 1: full outer join of 3 inputs on [k]
  asked for: one operator
  input 0  optional  parquet t0 [k, l]
  input 1  required  t1 [x]             was optional; pushed: x > 5; filter: y = '<b>'; read by: \
partitions: 3 of 8
  input 2  excluded  join 2             filter: z
  grouping: hash; exchanges: 1 (bulk rows 1); key sampling: 0
  null keys: spread
  skew: split, 1 partition in 4 pieces

Join 2 (in a cached table): SortMergeJoin inner [a = b]
  not rewritten: one operator (2 inputs)
    Do that.
  input 0  t
  input 1  t2
  skew of MultiFullJoin: not split: it streams
    Do this.
  skew of SortMergeJoin: not run: not yet

Join 3 (in a subquery): no shuffle
  asked for: one operator
  grouping: merged; exchanges: none
  null keys: none
  skew: not looked at: off

Join 4 (in a command): in a command
  asked for: one operator
  grouping: merged; exchanges: 2 (bulk rows 1, columnar 1; by row: Coalesce below); key sampling: 1
  null keys: none

Scan 1: parquet t, 8 buckets by [a, b]
  reads 2 of 8 buckets, in 2 partitions: no condition
    Write it anew.

Scan 2 (in a cached table): parquet t, 8 buckets by [a, b]
  reads 2 of 8 buckets: no condition
"""


def test_all_that_the_text_can_say() -> None:
    assert str(filled(Explanation, CONTENT)) == TEXT.strip()


def test_the_page_is_the_text() -> None:
    page = filled(Explanation, CONTENT)._repr_html_()
    assert page.startswith("<div><p><b>A note.</b></p><p><b>Another one.</b></p><p><b>Join 1:")
    plain = re.sub("<[^>]*>", "\n", page)
    words = [" ".join(html.unescape(line).split()) for line in plain.splitlines()]
    expected = [" ".join(line.split()) for line in TEXT.splitlines()]
    assert [line for line in words if line] == [line for line in expected if line]
