"""What `explain` says, in Python: objects, text, HTML and errors."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PySparkRuntimeError, PySparkTypeError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from stock import setting

from pyspark_skewext import _jvm, explain, multi_full_join


@pytest.fixture(scope="module")
def joined(spark: SparkSession) -> DataFrame:
    inputs = [spark.range(n, n + 9).withColumn(f"v{n}", sf.lit(n)) for n in range(3)]
    return multi_full_join(*inputs, on="id").where("id > 4")


def test_object(joined: DataFrame) -> None:
    explanation = explain(joined)
    (join,) = explanation.joins
    assert explanation.notes == []
    assert join["origin"] == {
        "status": "asked for",
        "text": "one operator",
        "detail": None,
        "advice": None,
    }
    assert [each["role"] for each in join["inputs"]] == ["optional"] * 3
    assert all("id > 4" in each["pushed"] for each in join["inputs"])
    assert join["execution"]["exchanges"] == 3
    assert join["skew"][0]["status"] == "not run"
    assert json.loads(json.dumps(explanation.to_dict())) == explanation.to_dict()


def test_what_is_done_to_the_result_stays_there(joined: DataFrame) -> None:
    explanation = explain(joined)
    explanation.to_dict()["joins"].clear()
    explanation.joins[0].clear()
    explanation.notes.append("x")
    assert explanation.joins[0]["number"] == 1
    assert explanation.notes == []


def test_text_and_html(spark: SparkSession, joined: DataFrame) -> None:
    explanation = explain(joined)
    assert str(explanation) == repr(explanation)
    assert str(explanation).startswith("Join 1: full outer join of 3 inputs on [id]")
    page = explanation._repr_html_()
    assert page.count("<tr>") == 2
    assert "pushed: id &gt; 4" in page
    assert "<b>asked for</b>: one operator" in page
    named = spark.range(3).withColumnRenamed("id", "<b>")
    assert "<b>]" not in explain(multi_full_join(named, named, on="<b>"))._repr_html_()
    nothing = explain(spark.range(3))
    assert str(nothing) == "No joins."
    assert nothing._repr_html_() == "<div><p>No joins.</p></div>"


def test_nothing_is_run(spark: SparkSession) -> None:
    one = spark.range(3).withColumn("x", sf.expr("if(id >= 0, raise_error('run'), 0)"))
    df = multi_full_join(one, spark.range(3), on="id")
    before = explain(df).to_dict()
    with pytest.raises(Exception, match="run"):
        df.collect()
    assert explain(df).to_dict()["joins"][0]["title"] == before["joins"][0]["title"]


def test_of_a_query_that_has_run(spark: SparkSession) -> None:
    df = multi_full_join(spark.range(9), spark.range(9), on="id")
    df.collect()
    (skew,) = explain(df).joins[0]["skew"]
    assert (skew["status"], skew["text"]) == ("whole", "no partition is skewed")


def test_switched_off(spark: SparkSession) -> None:
    with setting(spark, "spark.skewext.enabled", False):
        explanation = explain(multi_full_join(spark.range(3), spark.range(3), on="id"))
    assert explanation.notes == ["spark.skewext.enabled is false, so Spark plans all joins alone."]
    assert explanation.joins[0]["origin"]["status"] == "switched off"
    assert str(explanation).startswith("spark.skewext.enabled is false")
    assert "<p>spark.skewext.enabled is false" in explanation._repr_html_()


class _ConnectDataFrame:
    """Stands for the class of that module, whose own needs are not installed."""

    __module__ = "pyspark.sql.connect.dataframe"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (_ConnectDataFrame(), "a Spark Connect DataFrame"),
        (None, "Expected a DataFrame, not NoneType"),
        ("t", "Expected a DataFrame, not str"),
    ],
)
def test_not_a_dataframe(given: Any, words: str) -> None:
    with pytest.raises(PySparkTypeError, match=words):
        explain(given)


def test_errors_of_the_query_pass(spark: SparkSession) -> None:
    with pytest.raises(AnalysisException, match="streaming"):
        explain(spark.readStream.format("rate").load())


def test_jar_of_another_version(joined: DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_jvm, "__version__", "9.9.9")
    with pytest.raises(PySparkRuntimeError, match=r"9\.9\.9"):
        explain(joined)


def test_session_without_the_jar(joined: DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_jvm, "facade_of", lambda _: None)
    explanation = explain(joined)
    assert explanation.joins == []
    assert "skewext is not loaded in this session" in str(explanation)
