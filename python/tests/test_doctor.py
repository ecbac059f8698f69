"""``doctor`` in the session of the tests; test_sessions.py has other kinds of sessions."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import SparkSession
from stock import setting

import pyspark_skewext as skewext


def test_each_part_with_its_reason(spark: SparkSession) -> None:
    with setting(spark, "spark.skewext.skew.enabled", False):
        checkup = skewext.doctor(spark)
    reasons = {part.name: part.reason for part in checkup.parts if not part.active}
    assert reasons["splits of skewed partitions"] == "spark.skewext.skew.enabled is false"
    assert "multi-way joins" not in reasons and not checkup.healthy
    assert checkup.jar == checkup.version == skewext.__version__
    assert checkup.spark == spark.version and spark.version.startswith(str(checkup.spark_line))
    lines = str(checkup).splitlines()
    assert lines[0] == (
        f"skewext {checkup.version}, jar {checkup.jar} for Spark {checkup.spark_line}, "
        f"on Spark {spark.version}"
    )
    assert "  active  multi-way joins" in lines
    assert lines[-1].startswith("The driver's log lists the same in one line at level INFO")
    assert "active  multi-way joins" in checkup._repr_html_()
    assert json.loads(checkup.to_json()) == checkup.to_dict()
    assert checkup.to_dict()["parts"][0] == {
        "name": "multi-way joins",
        "active": True,
        "reason": None,
        "needed": True,
    }


def test_photon(spark: SparkSession) -> None:
    assert skewext.doctor(spark).notes == []
    with setting(spark, "spark.databricks.photon.enabled", True):
        assert "without Photon" in skewext.doctor(spark).notes[0]


def test_no_session() -> None:
    with pytest.raises(TypeError, match="Expected a SparkSession, not str"):
        skewext.doctor("spark")  # type: ignore[arg-type]
