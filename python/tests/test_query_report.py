"""The report on a query that has run: what it says, how it shows it, and where it looks."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Any

import numpy
import pytest
from pictures import svg_of
from pyspark.errors import AnalysisException, PySparkTypeError, PySparkValueError
from pyspark.sql import SparkSession
from stock import setting

import pyspark_skewext as skewext
from pyspark_skewext.cli import main
from pyspark_skewext.render import query_gains
from pyspark_skewext.render.chart import BLUE, MOST_BARS, ORANGE
from pyspark_skewext.render.query import MOST_STAGES, chart_of
from pyspark_skewext.report import QueryReport


@contextmanager
def logging_to(spark: SparkSession, folder: Path) -> Iterator[Any]:
    """Write an event log to the file `app` of the folder, by the listener that it yields."""
    context: Any = spark.sparkContext
    jvm: Any = spark._jvm
    scala_none = getattr(jvm.scala, "None$").__getattr__("MODULE$")
    # A file, as by default until Spark 4.
    conf = jvm.org.apache.spark.SparkConf(False).set("spark.eventLog.rolling.enabled", "false")
    conf.set("spark.eventLog.compress", "false")
    scheduler = jvm.org.apache.spark.scheduler
    listener = scheduler.EventLoggingListener(
        "app", scala_none, jvm.java.net.URI(folder.as_uri()), conf
    )
    listener.start()
    begin = ("nightly", jvm.scala.Some("app-1"), 0, "user", scala_none, scala_none, scala_none)
    listener.onApplicationStart(scheduler.SparkListenerApplicationStart(*begin))
    context._jsc.sc().addSparkListener(listener)
    yield listener
    # The end of a query reaches listeners later than its rows reach the caller.
    context._jsc.sc().listenerBus().waitUntilEmpty()
    context._jsc.sc().removeSparkListener(listener)
    listener.stop()


@pytest.fixture(scope="module")
def event_log(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, int]:
    """An event log with one join in it, and the number of that query."""
    folder = tmp_path_factory.mktemp("logs")
    with logging_to(spark, folder) as listener:
        spark.range(100).join(spark.range(50, 150), "id", "full").collect()
        number = skewext.query_report().query
        # The extension writes it to the log of the application itself, which has none here.
        jvm: Any = spark._jvm
        ours = jvm.org.apache.spark.sql.skewext
        explained = ours.QueryStatus.of(spark._jsparkSession).explanation(number).get()
        listener.onOtherEvent(ours.SparkListenerJoinsExplained(number, explained))
    return str(folder / "app"), number


@pytest.mark.parametrize("hint", ["merge", "broadcast"])
def test_a_log_without_the_extension(
    spark: SparkSession,
    hint: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its shuffled join is named with its gain, and a broadcast join is not."""
    with logging_to(spark, tmp_path), setting(spark, "spark.skewext.enabled", "false"):
        other = spark.range(50, 150).hint(hint)
        spark.range(100).join(other, "id", "inner").collect()
    # These rows take no second.
    monkeypatch.setattr(query_gains, "_WORTH", 0.001)
    page = tmp_path / "page.html"
    assert main(["report", str(tmp_path / "app"), "--html", str(page)]) == 0
    text, html = capsys.readouterr().out, page.read_text(encoding="utf-8")
    if hint == "broadcast":
        assert "gain most" not in text + html
        return
    assert "Joins that would gain most" in text and "Joins that would gain most" in html
    said = " ".join(text.split())
    join, time = r"SortMergeJoin on id \(stage \d+\)", r"[\d.]+ m?s"
    assert re.search(rf"{join}: about {time} of its {time} of task time", said)
    assert "Spark shuffles and sorts 100 and 100 rows" in said
    # The advice is of Scala, as in the tab, and knows nothing of gains.
    assert "Advice * The tasks of joins are " in said
    extension = "spark.sql.extensions=io.github.skewext.SkewExtensions"
    command = f"--jars {shlex.quote(skewext.jar_path())} --conf {extension}"
    assert f"\n  {command}\n" in text
    assert f">{escape(command)}</pre>" in html


def test_dataframe_id_last_query_and_log_give_the_same_report(
    spark: SparkSession, event_log: tuple[str, int]
) -> None:
    path, number = event_log
    joined = spark.range(100).join(spark.range(50, 150), "id", "full")
    with pytest.raises(AnalysisException, match="This plan has not ended; count"):
        skewext.query_report(joined)
    assert len(joined.collect()) == 150
    last = skewext.query_report()
    assert str(last) == str(skewext.query_report(joined))
    assert str(last) == str(skewext.query_report(numpy.int64(last.query)))
    join = last.stages[0].joins[0]
    assert (join.operator, join.keys, join.output_rows) == ("BuildProbeJoin", ("id",), 150)
    assert last.stages[0].total.shuffle_rows == 200

    seen: list[tuple[int, int]] = []
    logged = skewext.query_report(
        event_log=Path(path), progress=lambda done, known: seen.append((done, known))
    )
    assert logged.query == number
    assert str(logged) == str(skewext.query_report(number, event_log=path))
    title, *lines = str(logged).splitlines()
    live, *same = str(skewext.query_report(number)).splitlines()
    assert lines == same
    description = live.partition(", ")[2]
    assert title == f"Query {number} of nightly (app-1) in {path}: {description}"
    assert seen[-1][0] == seen[-1][1] == 2 * Path(path).stat().st_size
    # What was run without an event log is not in it.
    with pytest.raises(AnalysisException, match=f"There is no query {last.query} in the event log"):
        skewext.query_report(last.query, event_log=path)


def test_in_a_thread_without_an_active_session(event_log: tuple[str, int]) -> None:
    number = event_log[1]
    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(SparkSession.getActiveSession).result() is None
        report = threads.submit(skewext.query_report, number).result()
    assert str(report) == str(skewext.query_report(number))


def test_from_the_command_line(
    event_log: tuple[str, int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, number = event_log
    page = tmp_path / "page.html"
    assert main(["report", path, "--html", str(page)]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith(f"Query {number} of nightly (app-1) in {path}: ")
    assert f"Reading {path}" in captured.err
    html = page.read_text(encoding="utf-8")
    assert "<svg" in html and f"<title>Query {number} of nightly (app-1) in {path}: " in html
    assert main(["report", path, "--query", str(number), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["query"] == number
    assert main(["report", path, "--query", "98765"]) == 1
    assert "error: There is no query 98765" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"query": "1"}, PySparkTypeError, "number of a query or None, not str"),
        ({"query": True}, PySparkTypeError, "not bool"),
        ({"query": -1}, PySparkValueError, "not -1"),
        ({"query": 2**63}, PySparkValueError, f"not {2**63}"),
        ({"event_log": 7}, PySparkTypeError, "must be a path, not int"),
        ({"progress": 7}, PySparkTypeError, "function of two numbers"),
        ({"event_log": "/no/such/log"}, AnalysisException, "There is no event log /no/such/log"),
    ],
)
@pytest.mark.usefixtures("spark")
def test_wrong_arguments(arguments: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        skewext.query_report(**arguments)


def test_a_dataframe_is_in_no_log(spark: SparkSession) -> None:
    with pytest.raises(PySparkValueError, match="not in an event log"):
        skewext.query_report(spark.range(1), event_log="x")


# Without Spark from here on: figures as the JVM gives them.

MB = 1024**2


def figures(seconds: float, read: float = 0, **others: float) -> dict[str, Any]:
    made = {
        "run_ms": 1000 * seconds,
        "gc_ms": 0,
        "shuffle_bytes": read,
        "shuffle_rows": read / 100,
        "input_bytes": 0,
        "input_rows": 0,
        "memory_spilled": 0,
        "disk_spilled": 0,
    }
    return {**made, **others}


def made(
    slowest: dict[str, Any] | None = None,
    median: dict[str, Any] | None = None,
    join: dict[str, Any] | None = None,
    settings: dict[str, Any] | None = None,
    stages: int = 1,
    uneven: int = 1,
    below: bool = False,
    **changes: Any,
) -> QueryReport:
    slowest = slowest or figures(40, 900 * MB)
    median = median or figures(2, 30 * MB)
    tasks = [slowest["run_ms"], *[median["run_ms"]] * 199]
    stage = {
        "stage": 7,
        "prepares": False,
        "joins": [
            {
                "operator": "SortMergeJoin",
                "text": "SortMergeJoin [k], [k], FullOuter",
                "keys": ["k"],
                "joins_partitions": True,
                "split": None,
                "not_split": None,
                "metrics": {"number of output rows": 1234, "spill size": "1.0 MiB"},
                **(join or {}),
            }
        ],
        "tasks": 200,
        "failed_tasks": 0,
        "slowest": {"partition": 13, "host": "worker-3", **slowest},
        "median": median,
        "total": figures(438, 6000 * MB),
        "uneven_tasks": uneven,
        "is_slow": slowest["run_ms"] > 3000,
        "verdict": "uneven: 38 s to win" if uneven else None,
        "is_below_thresholds": below,
        "run_ms": tasks,
    }
    given = {
        "query": 5,
        "description": "collect at\n report.py:1 " + "x" * 80,
        "milliseconds": 61_000,
        "failure": None,
        "joins": 1,
        "stages": [{**stage, "stage": 7 + n} for n in range(stages)],
        "other_run_ms": 12_000,
        "explained": ["SortMergeJoin inner [k = k]: run by skewext: by blocks"],
        "advice": ["Stage 7 <is> uneven.", "Stage 7 spilled."],
        "settings": {
            "skewext_loaded": True,
            "extensions": "io.github.skewext.SkewExtensions",
            "switched_off": [],
            "shuffle_partitions": 200,
            "skewed_bytes": 256 * MB,
            "skewed_factor": 5.0,
            "advisory_bytes": 64 * MB,
            **(settings or {}),
        },
        "queries": [{"query": 5, "description": "", "milliseconds": 61_000, "joins": 1}],
        "join_work": [],
        "stage_work": [],
        "application": "nightly",
        "application_id": "app-1",
        "spark_version": "3.5.9",
        **changes,
    }
    return QueryReport.of(given)


def test_text() -> None:
    text = str(made(failure="boom\nmore"))
    lines = text.splitlines()
    assert lines[0].startswith("Query 5, collect at report.py:1 xxx") and len(lines[0]) < 80
    assert "took     61.0 s" in text
    assert "failed   boom\n" in text
    assert "skewext  SortMergeJoin inner [k = k]: run by skewext: by blocks" in text
    row = next(line for line in lines if "SortMergeJoin on k" in line)
    assert row.split()[4:] == [
        "200",
        "40.0",
        "s",
        "2.0",
        "s",
        "20",
        "900",
        "MiB",
        "30",
        "MiB",
        "9,437,184",
        "0",
        "B",
        "0",
        "B",
        "1,234",
    ]
    assert lines[-3:] == ["", "  * Stage 7 <is> uneven.", "  * Stage 7 spilled."]
    assert max(map(len, lines)) <= 120


@pytest.mark.slow
def test_pictures() -> None:
    report = made(stages=MOST_STAGES + 2)
    page = report._repr_html_()
    picture = svg_of(page)
    bars = [each for each in picture.iter() if each.tag.endswith("rect") and len(each)]
    assert len(bars) == 200 * MOST_STAGES
    colors = [each.get("fill") for each in bars[:200]]
    assert colors == [ORANGE, *[BLUE] * 199]
    assert "task 1 of 200 by time: 40.0 s" in page
    texts = [each.text for each in picture.iter() if each.tag.endswith("text")]
    assert {"40.0 s", "0", "tasks, the slowest first", "uneven tasks"} <= set(texts)
    # On a narrow page the table scrolls, and its names are at the left, as in text.
    assert "<div style='overflow-x:auto'><table><tr><th style='text-align:left'>stage" in page
    assert "<ul><li>Stage 7 &lt;is&gt; uneven.</li><li>Stage 7 spilled.</li></ul>" in page
    assert made(stages=0)._repr_html_().count("<svg") == 0
    many = made().stages[0]
    object.__setattr__(many, "task_seconds", tuple(range(10 * MOST_BARS, 0, -1)))
    chart = chart_of(many)
    assert chart.values[:2] == [(0, 10 * MOST_BARS), (10 * MOST_BARS - 10, 0)]
    assert len(chart.values) == len(chart.labels) == MOST_BARS


def test_as_a_dictionary() -> None:
    report = made()
    found = json.loads(report.to_json())
    assert found == report.to_dict()
    assert found["advice"] == report.advice
    assert found["stages"][0]["times"] == 20
    assert found["stages"][0]["joins"][0]["metrics"]["spill size"] == "1.0 MiB"
    assert found["stages"][0]["slowest"]["seconds"] == 40
    assert made(median=figures(0)).to_dict()["stages"][0]["times"] is None
