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
    assert all("id > 4" in each.filters for each in join.inputs)
    assert join.execution is not None and join.execution.exchanges == 3
    assert join.skew[0].status == "not run"
    assert json.loads(explanation.to_json()) == explanation.to_dict()


def test_text_and_html(spark: SparkSession, joined: DataFrame) -> None:
    explanation = explain(joined)
    assert str(explanation) == repr(explanation)
    assert str(explanation).startswith("Join 1: full outer join of 3 inputs on [id]")
    page = explanation._repr_html_()
    assert page.startswith("<div><p><b>Join 1: full outer join of 3 inputs on [id]</b></p><pre ")
    # Jupyter's own style has a font whose columns are not aligned.
    assert "font-family:monospace" in page
    assert "filter: id &gt; 4" in page and "asked for: one operator" in page
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


def test_the_page_is_the_text() -> None:
    join = ["Join 1: [k]", "input 0  t  filter: y = '<b>'", "  Do that."]
    entries = [["A note."], join, ["Scan"]]
    explanation = Explanation([], [], [], entries)
    assert str(explanation) == (
        "A note.\n\nJoin 1: [k]\n  input 0  t  filter: y = '<b>'\n    Do that.\n\nScan"
    )
    page = explanation._repr_html_()
    assert page.startswith("<div><p><b>A note.</b></p><p><b>Join 1: [k]</b></p><pre ")
    plain = re.sub("<[^>]*>", "\n", page)
    words = [" ".join(html.unescape(line).split()) for line in plain.splitlines()]
    expected = [" ".join(line.split()) for line in str(explanation).splitlines()]
    assert [line for line in words if line] == [line for line in expected if line]
    assert explanation.to_dict() == {"notes": [], "joins": [], "scans": []}
