"""The command line."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from multisets import assert_same_rows
from pyspark.sql import SparkSession

import pyspark_skewext as skewext
from pyspark_skewext.cli import main
from pyspark_skewext.cli.files import InputFile, overlaps, suffix_format
from pyspark_skewext.cli.progress import Progress


@pytest.fixture
def files(spark: SparkSession, tmp_path: Path) -> dict[str, str]:
    """Three inputs: a directory of parquet, a directory of JSON without a suffix, a CSV file."""
    phones = spark.createDataFrame(
        [(1, "red"), (2, "blue"), (None, "grey")], "id int, colour string"
    )
    bills = spark.createDataFrame([(2, 9.5), (3, 4.0)], "device long, amount double")
    paths = {name: str(tmp_path / name) for name in ("phones.parquet", "bills", "calls.csv")}
    phones.write.parquet(paths["phones.parquet"])
    bills.write.json(paths["bills"])
    Path(paths["calls.csv"]).write_text("id,calls\n1,7\n3,2\n3,5\n")
    return paths


def joined_in_process(
    capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0
) -> tuple[str, str]:
    capsys.readouterr()
    assert main(["join", *arguments]) == code
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return captured.out, captured.err


@pytest.mark.usefixtures("spark")
def test_join_of_three_formats(
    spark: SparkSession,
    files: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    output = str(tmp_path / "out")
    inputs = [files["phones.parquet"], files["bills"] + ":device", files["calls.csv"]]
    out, err = joined_in_process(capsys, *inputs, "--on", "id", "--output", output)
    result = spark.read.parquet(output)
    assert result.columns == ["id", "colour", "amount", "calls"]
    assert_same_rows(
        result,
        [
            (1, "red", None, 7),
            (2, "blue", 9.5, None),
            (3, None, 4.0, 2),
            (3, None, 4.0, 5),
            (None, "grey", None, None),
        ],
    )
    summary = out.splitlines()
    assert summary[0] == "Joined 3 inputs on id (full):"
    counts = [line.split()[-2] for line in summary[1:5]]
    assert counts == ["3", "2", "3", "5"]
    assert "3 shuffles (Exchange) for 3 inputs" in summary[5]
    assert " s, " in summary[5]
    assert f"Reading {files['calls.csv']}" in err
    assert f"Joining 3 inputs into {output}" in err


@pytest.mark.parametrize(("how", "keys"), [("left", {1, 2, None}), ("inner", {2})])
def test_how(
    spark: SparkSession,
    files: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    how: str,
    keys: set[Any],
) -> None:
    output = str(tmp_path / "out.orc")
    inputs = [files["phones.parquet"], files["bills"] + ":device"]
    joined_in_process(capsys, *inputs, "--on", "id", "--output", output, "--how", how)
    assert {row.id for row in spark.read.orc(output).collect()} == keys


def test_csv_with_indicator_and_suffixes(
    tmp_path: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "old.csv").write_text("shop,day,n\n007,2024-01-01,1\n008,2024-01-01,2\n")
    (tmp_path / "new.csv").write_text("shop,day,n\n007,2024-01-01,3\n")
    output = str(tmp_path / "both.csv")
    arguments = [str(tmp_path / "old.csv"), str(tmp_path / "new.csv"), "--on", "shop,day"]
    arguments += ["--output", output, "--suffixes", ",_new", "--indicator", "in", "--no-infer"]
    joined_in_process(capsys, *arguments)
    result = spark.read.option("header", True).csv(output)
    assert result.columns == ["shop", "day", "n", "n_new", "in"]
    assert_same_rows(
        result, [("007", "2024-01-01", "1", "3", "0;1"), ("008", "2024-01-01", "2", None, "0")]
    )


def test_same_names_are_refused_with_advice(
    tmp_path: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("k,v\n1,2\n")
    arguments = [str(tmp_path / "a.csv"), str(tmp_path / "b.csv"), "--on", "k"]
    _, err = joined_in_process(capsys, *arguments, "-o", str(tmp_path / "out"), code=1)
    assert "error: Several inputs have a column named 'v'" in err
    assert err.rstrip().endswith("--suffixes _a,_b")
    assert not (tmp_path / "out").exists()


def test_modes(
    files: dict[str, str], tmp_path: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    output = str(tmp_path / "out.json")
    arguments = [files["phones.parquet"], files["calls.csv"], "--on", "id", "--output", output]
    joined_in_process(capsys, *arguments)
    _, err = joined_in_process(capsys, *arguments, code=1)
    assert err.splitlines()[-1].startswith(f"error: {output} exists already")
    joined_in_process(capsys, *arguments, "--mode", "append")
    assert spark.read.json(output).count() == 10
    out, _ = joined_in_process(capsys, *arguments, "--mode", "ignore")
    assert out == f"{output} exists already: nothing was done.\n"
    joined_in_process(capsys, *arguments, "--mode", "overwrite", "--output-format", "json")
    assert spark.read.json(output).count() == 5


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            ["--on", "nokey"],
            "/phones.parquet has no column 'nokey'; its columns are 'id', 'colour'.",
        ),
        (["--indicator", "colour"], "colour"),
        (["/no/such/file.parquet"], "/no/such/file.parquet"),
    ],
)
def test_failures_are_one_line(
    files: dict[str, str],
    tmp_path: Path,
    spark: SparkSession,
    capsys: pytest.CaptureFixture[str],
    change: list[str],
    words: str,
) -> None:
    arguments = [files["phones.parquet"], files["calls.csv"], "--on", "id"]
    arguments += ["--output", str(tmp_path / "out")]
    if change[0].startswith("/"):
        arguments[1:1] = change
    else:
        arguments += change
    _, err = joined_in_process(capsys, *arguments, code=1)
    errors = [line for line in err.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert err.splitlines()[-1] == errors[0]
    assert words in errors[0]
    assert spark.range(2).count() == 2


def test_broken_data_is_one_line(
    files: dict[str, str], tmp_path: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    for part in Path(files["phones.parquet"]).glob("part-*"):
        part.write_bytes(part.read_bytes()[:-20] + b"x" * 20)
    arguments = [files["phones.parquet"], files["calls.csv"], "--on", "id"]
    _, err = joined_in_process(capsys, *arguments, "--output", str(tmp_path / "out"), code=1)
    assert len([line for line in err.splitlines() if line.startswith("error: ")]) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "usage:"),
        (["jion"], "invalid choice: 'jion'"),
        (["join"], "required: INPUT, --on, --output/-o"),
        (["join", "a.csv", "--on", "k", "--output", "o"], "at least two inputs"),
        (["join", "a.csv", "b.csv", "--on", "k,", "--output", "o"], "empty name"),
        (["join", "a.csv", "b.csv:x,y", "--on", "k", "--output", "o"], "2 key names (x, y)"),
        (["join", "a.csv", "b.dat", "--on", "k", "--output", "o"], "add --format parquet|csv"),
        (["join", "a.csv", "b.csv", "--on", "k", "-o", "o", "--conf", "x"], "KEY=VALUE"),
        (["join", "a.csv", "b.csv", "--on", "k", "-o", "o", "--suffixes", "x"], "1 entries"),
        (["join", "a.csv", "b.csv", "--on", "k", "-o", "o", "--how", "outer"], "invalid choice"),
        (
            ["join", "a.csv", "d/b.csv", "--on", "k", "-o", "d", "--mode", "overwrite"],
            "would delete the input d/b.csv",
        ),
    ],
)
def test_usage_errors(capsys: pytest.CaptureFixture[str], arguments: list[str], words: str) -> None:
    assert main(arguments) == 2
    assert words in capsys.readouterr().err


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert "join files and write the result" in out
    assert "report" in out and "demo" not in out
    assert main(["join", "--help"]) == 0
    out = capsys.readouterr().out
    assert "examples:" in out
    assert "--on id --output out/" in out
    assert main(["--version"]) == 0


def test_path_of_the_jar(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["jar"]) == 0
    assert capsys.readouterr().out.strip() == skewext.jar_path()
    assert main(["jar", "--spark", "2.4"]) == 1
    assert "error: pyspark_skewext" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argument", "path", "keys"),
    [
        ("a.csv", "a.csv", None),
        ("a.csv:id", "a.csv", ["id"]),
        ("a.csv:x,y", "a.csv", ["x", "y"]),
        ("s3a://bucket/a.csv", "s3a://bucket/a.csv", None),
        ("s3a://bucket/a.csv:id", "s3a://bucket/a.csv", ["id"]),
        ("hdfs://host:9000/a.csv", "hdfs://host:9000/a.csv", None),
        ("C:\\data\\a.csv", "C:\\data\\a.csv", None),
        ("a.csv:", "a.csv:", None),
    ],
)
def test_inputs_with_key_names(argument: str, path: str, keys: list[str] | None) -> None:
    parsed = InputFile.parse(argument, None)
    assert (parsed.path, parsed.keys) == (path, keys)


def test_a_file_of_that_name_goes_before_key_names(tmp_path: Path) -> None:
    odd = tmp_path / "a.csv:id"
    odd.touch()
    assert InputFile.parse(str(odd), None).keys is None


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.parquet", "parquet"),
        ("/x/a.CSV", "csv"),
        ("a.csv.gz", "csv"),
        ("a.snappy.parquet", "parquet"),
        ("a.jsonl", "json"),
        ("out.orc/", "orc"),
        ("data/*.csv", "csv"),
        ("a.v2", None),
        ("a.gz", None),
        ("a", None),
    ],
)
def test_formats_by_name(path: str, expected: str | None) -> None:
    assert suffix_format(path) == expected


def test_format_of_a_directory_by_its_files(tmp_path: Path) -> None:
    part = tmp_path / "table" / "day=1"
    part.mkdir(parents=True)
    (part / "part-0.csv.gz").touch()
    (part / "_SUCCESS").touch()
    (part / ".part-0.crc").touch()
    assert InputFile.parse(str(tmp_path / "table"), None).format == "csv"
    (part / "part-1.json").touch()
    assert InputFile.parse(str(tmp_path / "table"), None).format is None
    assert InputFile.parse(str(tmp_path / "table"), "orc").format == "orc"


@pytest.mark.parametrize(
    ("output", "given", "expected"),
    [
        ("out", "out", True),
        ("out/", "./out/a.csv", True),
        ("out/x", "out", True),
        ("out", "output", False),
        ("file:///x/a", "/x/a/b", True),
        ("s3a://b/x", "s3a://b/x/", True),
        ("s3a://b/x", "s3a://c/x", False),
    ],
)
def test_overlapping_paths(output: str, given: str, expected: bool) -> None:
    assert overlaps(output, given) is expected


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("terminal", [True, False])
def test_progress(spark: SparkSession, terminal: bool) -> None:
    stream = _Terminal() if terminal else io.StringIO()
    with Progress(spark, stream, seconds=0.05) as progress:
        progress.step("Counting")
        spark.range(0, 4, 1, 4).selectExpr(
            "java_method('java.lang.Thread', 'sleep', 300L)"
        ).collect()
        time.sleep(0.2)
    text = stream.getvalue()
    assert "Counting\n" in text or terminal
    assert "of 4 tasks done" in text
    assert ("\r" in text) is terminal
    if terminal:
        assert text.endswith("\r\x1b[K")
    else:
        lines = [line.split("] ")[1] for line in text.splitlines()]
        assert all(one != two for one, two in zip(lines, lines[1:]))


def test_as_a_program(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,x\n1,2\n")
    (tmp_path / "b.csv").write_text("id,y\n1,3\n2,4\n")
    command = [sys.executable, "-m", "pyspark_skewext", "join", "a.csv", "b.csv", "--on", "id"]
    command += ["--output", "out", "--master", "local[1]", "--conf", "spark.ui.enabled=false"]
    command += ["--conf", "spark.sql.shuffle.partitions=2"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "Joined 2 inputs on id (full):"
    assert "2 shuffles (Exchange) for 2 inputs" in done.stdout
    assert "Starting Spark" in done.stderr
    assert (tmp_path / "out" / "_SUCCESS").exists()
