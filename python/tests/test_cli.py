"""The command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
from pyspark.sql import SparkSession
from scripts import run_script

import pyspark_skewext as skewext
from pyspark_skewext import cli
from pyspark_skewext.cli import main


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "required: command"),
        (["jra"], "invalid choice: 'jra'"),
        (["report"], "required: EVENTLOG"),
        (["report", "log", "--query", "x"], "invalid int value: 'x'"),
        (["report", "log", "--conf", "x"], "expected KEY=VALUE, not 'x'"),
    ],
)
def test_usage_errors(capsys: pytest.CaptureFixture[str], arguments: list[str], words: str) -> None:
    assert main(arguments) == 2
    assert words in capsys.readouterr().err


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert "jar" in out and "report" in out
    assert main(["report", "--help"]) == 0
    assert "--html" in capsys.readouterr().out
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"pyspark_skewext {skewext.__version__}\n"


def test_path_of_the_jar(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["jar"]) == 0
    assert capsys.readouterr().out.strip() == skewext.jar_path()
    assert main(["jar", "--spark", "2.4"]) == 1
    assert "error: pyspark_skewext" in capsys.readouterr().err


def test_paths_are_checked_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started = Mock()
    monkeypatch.setattr(cli, "_session", started)
    for log in ("/no/such/log", "file:/no/such/log", "file:///no/such/log"):
        assert main(["report", log]) == 1
        assert capsys.readouterr().err == f"error: There is no event log {log}.\n"
    page = tmp_path / "none" / "page.html"
    assert main(["report", str(tmp_path), "--html", str(page)]) == 1
    assert capsys.readouterr().err == f"error: There is no folder {page.parent}.\n"
    assert main(["report", tmp_path.as_uri(), "--html", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"error: {tmp_path} is a folder: --html needs a file.\n"
    started.assert_not_called()


def test_unexpected_errors_keep_their_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "_session", Mock(side_effect=ZeroDivisionError))
    with pytest.raises(ZeroDivisionError):
        main(["report", str(tmp_path)])
    monkeypatch.setattr(cli, "_session", Mock(side_effect=KeyboardInterrupt))
    assert main(["report", str(tmp_path)]) == 130
    monkeypatch.setattr(cli, "_session", Mock(side_effect=ImportError(name="pyspark.sql")))
    assert main(["report", str(tmp_path)]) == 1
    assert "error: PySpark is not installed, or only its client" in capsys.readouterr().err


@pytest.mark.slow
def test_as_a_program(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A Spark of its own reads the log that another one has written, and so does one that runs."""
    script = """
import pyspark_skewext as skewext
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[1]").config("spark.eventLog.enabled", True)
builder = builder.config("spark.eventLog.dir", "logs").config("spark.ui.enabled", False)
spark = skewext.configure(builder).getOrCreate()
spark.range(9).join(spark.range(5, 15), "id", "full").collect()
spark.stop()
"""
    (tmp_path / "logs").mkdir()

    run_script(script, tmp_path)
    (log,) = (tmp_path / "logs").iterdir()
    report = ["-m", "pyspark_skewext", "report", f"logs/{log.name}", "--json"]
    done = subprocess.run(
        [sys.executable, *report, "--conf", "spark.sql.shuffle.partitions=2"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["join_count"] == 1
    assert f"Reading logs/{log.name}" in done.stderr
    assert main(["report", str(log), "--query", "98765"]) == 1
    said = capsys.readouterr().err
    assert "error: There is no query 98765" in said and "Traceback" not in said
