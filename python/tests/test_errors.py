"""Bad input: one clear sentence of PySpark's own errors, and the session works afterwards."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import Mock

import pytest
from plans import plan_of
from pyspark.errors import (
    AnalysisException,
    PySparkException,
    PySparkRuntimeError,
    PySparkTypeError,
    PySparkValueError,
)
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from stock import setting

import pyspark_skewext as skewext
from pyspark_skewext import _jar, _jvm, multi_full_join, multi_join


@pytest.fixture(scope="module")
def t1(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([(1, "a")], "k int, a string")


@pytest.fixture(scope="module")
def t2(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([(1, "b")], "k int, b string")


@pytest.fixture(autouse=True, scope="module")
def _works_afterwards(t1: DataFrame, t2: DataFrame) -> Iterator[None]:
    yield
    assert multi_full_join(t1, t2, on="k").count() == 1


@pytest.fixture(autouse=True)
def _plans_afterwards(t1: DataFrame, t2: DataFrame) -> Iterator[None]:
    # Running it after each test would take most of the time.
    yield
    assert "MultiFullJoin" in plan_of(multi_full_join(t1, t2, on="k"))


def refused(kind: type[Exception], words: str, *args: Any, **kwargs: Any) -> str:
    """The call raises exactly that error, whose message is one line with these words."""
    with pytest.raises(kind) as caught:
        multi_join(*args, **kwargs)
    assert isinstance(caught.value, PySparkException)
    # Through Spark Connect a join is SQL: Spark adds where in the text it is, the server its stack.
    message = re.sub(
        r"; line \d+ pos \d+(\n\nJVM stacktrace:.*)?$", "", str(caught.value), flags=re.S
    )
    assert words in message
    assert "\n" not in message.strip()
    assert message[0].isupper() or message.split(" ")[0] in ("on", "how", "suffixes", "indicator")
    assert message.endswith(".")
    return message


def test_missing_column_names_the_input_and_its_columns(t1: DataFrame, t2: DataFrame) -> None:
    other = t2.withColumnRenamed("k", "dev_id")
    message = refused(AnalysisException, "Input 1 (counting from 0)", t1, other, on="k")
    assert "no column 'k'" in message
    assert "'dev_id', 'b'; where its key has another name, pass a tuple: (df, 'dev_id')" in message
    message = refused(AnalysisException, "(df, ['dev_id', 'b'])", t1, other, on=["k", "a"])
    message = refused(AnalysisException, "'dev_ID2'", t1, (other, "dev_ID2"), on="k")
    assert "did you mean 'dev_id'?" in message and "tuple" not in message


def test_long_lists_of_columns_are_cut(spark: SparkSession, t1: DataFrame) -> None:
    wide = spark.range(1).select(*(sf.lit(1).alias(f"c{n}") for n in range(300)))
    message = refused(AnalysisException, "280 more", t1, wide, on="k")
    assert len(message) < 400


def test_names_follow_the_sessions_case_sensitivity(spark: SparkSession, t1: DataFrame) -> None:
    upper = spark.createDataFrame([(1, 2)], "K int, b int")
    assert multi_full_join(t1, upper, on="k").count() == 1
    with setting(spark, "spark.sql.caseSensitive", "true"):
        refused(AnalysisException, "no column 'k'", t1, upper, on="k")
        both = spark.createDataFrame([(1, 2)], "K int, k int")
        assert multi_full_join(t1, both, on="k").columns == ["k", "a", "K"]
    refused(AnalysisException, "2 columns named 'k'", t1, both, on="k")


def test_ambiguous_key(t1: DataFrame) -> None:
    twice = t1.select("k", sf.col("k"))
    refused(AnalysisException, "Input 1 (counting from 0) has 2 columns", t1, twice, on="k")


@pytest.mark.parametrize("on", [[], ()])
def test_empty_on(t1: DataFrame, t2: DataFrame, on: Any) -> None:
    refused(PySparkValueError, "on must not be empty", t1, t2, on=on)


def test_no_names(t1: DataFrame, t2: DataFrame) -> None:
    refused(PySparkValueError, "input 1 (counting from 0) must not be empty", t1, (t2, []), on="k")


@pytest.mark.parametrize("on", [["k", "k"], ["k", "K"]])
def test_repeated_names(t1: DataFrame, t2: DataFrame, on: Any) -> None:
    refused(PySparkValueError, "more than once", t1, t2, on=on)


def test_one_input(t1: DataFrame) -> None:
    refused(AnalysisException, "at least two inputs, got 1", t1, on="k")
    refused(AnalysisException, "at least two inputs, got 1", (t1, "k"), on="x")


@pytest.mark.parametrize(
    ("on", "found"), [(None, "NoneType"), (3, "int"), ([1], "list with int"), ({"k"}, "set")]
)
def test_type_of_on(t1: DataFrame, t2: DataFrame, on: Any, found: str) -> None:
    refused(PySparkTypeError, f"not {found}", t1, t2, on=on)


def test_on_must_be_names_not_columns(t1: DataFrame, t2: DataFrame) -> None:
    refused(PySparkTypeError, "on must be the name of a column", t1, t2, on=t1.k)
    refused(PySparkTypeError, "list with Column", t1, t2, on=[t1.k])


NotOfSpark = type("DataFrame", (), {"__module__": "pandas"})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("t2", "not str"),
        (None, "not NoneType"),
        (("t2", "k"), "not str"),
        ((), "a tuple of 0"),
        ((1, 2, 3), "a tuple of 3"),
        (NotOfSpark(), "not pandas.DataFrame"),
    ],
)
def test_type_of_an_input(t1: DataFrame, given: Any, words: str) -> None:
    message = refused(PySparkTypeError, words, t1, given, on="k")
    assert "Input 1 (counting from 0)" in message


@pytest.mark.parametrize("call", [skewext.explain, lambda df: skewext.latest(df, by="k")])
def test_a_frame_of_another_library(call: Any) -> None:
    with pytest.raises(PySparkTypeError, match=r"a DataFrame, not pandas\.DataFrame"):
        call(NotOfSpark())


def test_inputs_in_a_list(t1: DataFrame, t2: DataFrame) -> None:
    refused(PySparkTypeError, "one by one, as in f(*inputs)", [t1, t2], on="k")


def test_type_of_key_names(t1: DataFrame, t2: DataFrame) -> None:
    refused(PySparkTypeError, "key names of input 1", t1, (t2, 3), on="k")
    refused(PySparkTypeError, "key names of input 0", (t1, [t1.k]), t2, on="k")


def test_number_of_key_names(t1: DataFrame, t2: DataFrame) -> None:
    words = "Input 1 (counting from 0) has 2 key columns (k, b), the join has 1 (k)."
    refused(AnalysisException, words, t1, (t2, ["k", "b"]), on="k")


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("map<string,int>", "map('a', 1)"),
        ("array<map<string,int>>", "array(map('a', 1))"),
        ("struct<m:map<string,int>>", "named_struct('m', map('a', 1))"),
    ],
)
def test_map_keys(spark: SparkSession, kind: str, value: str) -> None:
    df = spark.sql(f"select {value} as k")
    message = refused(AnalysisException, "which cannot be compared", df, df, on="k")
    assert "Input 0 (counting from 0) has the key column 'k'" in message
    # Spark 4 says of the map that it is not null.
    assert kind.rstrip(">") in message.lower().replace(", ", ",").replace(": ", ":")


def test_keys_of_types_that_do_not_meet(spark: SparkSession) -> None:
    one = spark.sql("select 1 as k")
    two = spark.sql("select array(1) as k")
    with pytest.raises(AnalysisException):
        multi_full_join(one, two, on="k")


def test_streaming(spark: SparkSession, t1: DataFrame) -> None:
    stream = spark.readStream.format("rate").load().selectExpr("cast(value as int) as k")
    message = refused(AnalysisException, "streaming", t1, stream, on="k")
    assert "Input 1 (counting from 0)" in message


def test_connect_session() -> None:
    class SparkSession:
        __module__ = "pyspark.sql.connect.session"
        conf: ClassVar[dict[str, str]] = {"spark.skewext.enabled": "false"}

    remote: Any = SparkSession()
    assert not skewext.is_enabled(remote)
    with pytest.raises(PySparkTypeError, match="Spark Connect"):
        skewext.register(remote)


def test_not_a_session() -> None:
    nothing: Any = None
    for call in (skewext.is_enabled, skewext.register):
        with pytest.raises(PySparkTypeError, match="Expected a SparkSession, not NoneType"):
            call(nothing)


def test_unknown_how(t1: DataFrame, t2: DataFrame) -> None:
    refused(PySparkValueError, "'cross'", t1, t2, on="k", how="cross")
    refused(PySparkValueError, "'right'", t1, t2, on="k", how="right")
    refused(PySparkTypeError, "not int", t1, t2, on="k", how=1)


def test_roles(t1: DataFrame, t2: DataFrame) -> None:
    words = "how must have 2 entries, one for each input, not 3."
    assert words == refused(AnalysisException, words, t1, t2, on="k", how=["required"] * 3)
    refused(
        PySparkValueError, "Unknown role 'maybe' for", t1, t2, on="k", how=["required", "maybe"]
    )
    refused(PySparkTypeError, "role of input 0", t1, t2, on="k", how=[None, "required"])
    refused(AnalysisException, "All inputs are excluded", t1, t2, on="k", how=["excluded"] * 2)


def test_suffixes(t1: DataFrame, t2: DataFrame) -> None:
    words = "suffixes must have 2 entries, one for each input, not 1."
    assert words == refused(AnalysisException, words, t1, t2, on="k", suffixes=["_a"])
    refused(PySparkTypeError, "not str", t1, t2, on="k", suffixes="_a")
    refused(PySparkTypeError, "suffix of input 1", t1, t2, on="k", suffixes=["_a", 3])


def test_suffixes_that_are_not_distinct(t1: DataFrame) -> None:
    with pytest.raises(AnalysisException, match="a_x"):
        multi_full_join(t1, t1, on="k", suffixes=["_x", "_x"])
    with pytest.raises(AnalysisException):
        multi_full_join(t1, t1, on="k", suffixes=[None, ""])


def test_indicator(t1: DataFrame, t2: DataFrame) -> None:
    refused(PySparkTypeError, "not bool", t1, t2, on="k", indicator=True)
    refused(PySparkValueError, "empty", t1, t2, on="k", indicator="")
    with pytest.raises(AnalysisException, match=r"'b'|`b`"):
        multi_full_join(t1, t2, on="k", indicator="b")


def test_on_is_needed(t1: DataFrame, t2: DataFrame) -> None:
    with pytest.raises(TypeError, match="'on'"):
        multi_full_join(t1, t2)  # type: ignore[call-arg]


@pytest.mark.classic("is about the jar in this process")
def test_jar_and_package_of_other_versions(
    t1: DataFrame, t2: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_jvm, "__version__", "9.9.9")
    message = refused(PySparkRuntimeError, "9.9.9", t1, t2, on="k")
    assert f"version {skewext.__version__} " in message
    assert skewext.is_enabled(t1.sparkSession)
    monkeypatch.undo()


def test_jar_for_another_spark() -> None:
    # With jars that are there: test_sessions.py.
    jvm = Mock()
    jvm.io.github.skewext.internal.BuildInfo.version.return_value = skewext.__version__
    jvm.io.github.skewext.internal.BuildInfo.sparkLine.return_value = "3.5"
    _jvm.check_versions(jvm, "3.5.9")
    with pytest.raises(PySparkRuntimeError, match=re.escape("Spark 3.5 but this is Spark 4.0.1")):
        _jvm.check_versions(jvm, "4.0.1")


def test_jar_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKEWEXT_JAR", str(tmp_path / "none.jar"))
    with pytest.raises(PySparkRuntimeError, match=r"SKEWEXT_JAR names .*none.jar', which is not"):
        skewext.jar_path()
    monkeypatch.delenv("SKEWEXT_JAR")
    monkeypatch.setattr(_jar, "JAR_DIRECTORY", tmp_path)
    with pytest.raises(PySparkRuntimeError, match=r"jar is missing.*reinstall"):
        skewext.jar_path()
    (tmp_path / "skewext-spark3.5_2.12-0.0.1.jar").touch()
    monkeypatch.setenv("SKEWEXT_SPARK_LINE", "3.5")
    with pytest.raises(PySparkRuntimeError, match=rf"{skewext.__version__} needs.*0\.0\.1\.jar"):
        skewext.jar_path()
    right = tmp_path / f"skewext-spark3.5_2.12-{skewext.__version__}.jar"
    right.touch()
    assert skewext.jar_path() == str(right)
    other = tmp_path / "other.jar"
    other.touch()
    monkeypatch.setenv("SKEWEXT_JAR", str(other))
    assert skewext.jar_path() == str(other)


def test_jar_of_the_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jars = {
        line: tmp_path / f"skewext-spark{line}_{scala}-{skewext.__version__}.jar"
        for line, scala in (("3.5", "2.12"), ("4.1", "2.13"), ("4.2", "2.13"))
    }
    for jar in jars.values():
        jar.touch()
    monkeypatch.delenv("SKEWEXT_JAR", raising=False)
    monkeypatch.delenv("SKEWEXT_SPARK_LINE", raising=False)
    monkeypatch.setattr(_jar, "JAR_DIRECTORY", tmp_path)
    for version, line in (("3.5.0", "3.5"), ("4.1.2", "4.1"), ("4.2.0", "4.2"), ("4.2", "4.2")):
        monkeypatch.setattr("pyspark.__version__", version)
        assert skewext.jar_path() == str(jars[line])
    # What is asked for goes before what runs here.
    assert skewext.jar_path("4.1.2") == str(jars["4.1"])
    monkeypatch.setenv("SKEWEXT_SPARK_LINE", "3.5")
    assert skewext.jar_path() == str(jars["3.5"])
    with pytest.raises(PySparkTypeError, match=r"must be text such as '4\.2', not float"):
        skewext.jar_path(4.2)  # type: ignore[arg-type]
    with pytest.raises(
        PySparkRuntimeError,
        match=r"no jar for Spark 3\.4\.4; .* lines of Spark: 3\.5, 4\.1, 4\.2\.",
    ):
        skewext.jar_path("3.4.4")
    # Without PySpark: the Spark of SPARK_HOME.
    monkeypatch.delenv("SKEWEXT_SPARK_LINE")
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.delenv("SPARK_HOME", raising=False)
    with pytest.raises(RuntimeError, match=r"Without PySpark.*\(3\.5, 4\.1, 4\.2\)"):
        skewext.jar_path()
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-core_2.13-4.2.0.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert skewext.jar_path() == str(jars["4.2"])
