"""A jar in another line of Spark than its own, as after an update of PySpark alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import pyspark_skewext as skewext
from pyspark_skewext import _jar

SCRIPT = """
import warnings
import pyspark_skewext as skewext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", False)
spark = skewext.configure(builder).getOrCreate()

def both():
    one = spark.createDataFrame([(1, "a"), (2, "b")], "k int, a string")
    return one, spark.createDataFrame([(2, "c"), (3, "d")], "k int, b string")

def refused(call):
    try:
        call()
    except PySparkRuntimeError as error:
        print(str(error).splitlines()[0])

refused(lambda: skewext.multi_full_join(*both(), on="k"))
refused(lambda: skewext.skew_join(*both(), on="k", technique="salted"))
refused(lambda: skewext.skew_report(both()[0], on="k"))
refused(lambda: skewext.register(spark))
assert not skewext.is_enabled(spark)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    skewext.configure(SparkSession.builder)
assert any("running without skewext" in str(one.message) for one in told), told
# Spark's own queries are what they are, hints of ours among them.
one, two = both()
joined = one.join(two.hint("skew_join", "salted"), "k", "full").orderBy("k")
assert [tuple(row) for row in joined.collect()] == [(1, "a", None), (2, "b", "c"), (3, None, "d")]
(note,) = skewext.explain(joined).notes
print(note)
"""


def others() -> list[Path]:
    """The jars of other lines that are there."""
    ours = Path(skewext.jar_path())
    return [jar for jar in sorted(_jar.JAR_DIRECTORY.glob("*.jar")) if jar.name != ours.name]


@pytest.mark.skipif(not others(), reason="jars of other lines of Spark are not made: make jars")
def test_a_jar_of_another_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for jar in others():
        monkeypatch.setenv("SKEWEXT_JAR", str(jar))
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr[-3000:]
        line = jar.name.split("spark")[1].split("_")[0]
        told = done.stdout.splitlines()
        assert len(told) == 5, done.stdout
        for message in told:
            assert f"was built for Spark {line} but this is Spark" in message
        # One warning, and nothing of classes that are not there.
        assert done.stderr.count("is built for Spark") == 1, done.stderr
        assert "java.lang" not in done.stderr, done.stderr
