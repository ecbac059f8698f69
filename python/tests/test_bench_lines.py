"""The benchmark on several lines of Spark that take turns."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import run
from harness import workers
from harness.case import Case, Point
from harness.measure import Options, measure
from harness.sessions import SessionSpec
from harness.variants import VARIANTS, expected_plan
from harness.workers import Pool, python_of
from harness.workspace import workspace

from pyspark_skewext import __version__, _jar

CASE = Case("two", "two tables", (Point("all"),), ("sortmerge", "ours", "comet-sortmerge", "floor"))


class Sessions(Pool):
    """In place of sessions: what they are asked, and answers as from them."""

    def __init__(self, checksums: dict[str, str], seconds: dict[str, float]) -> None:
        self.asked: list[tuple[str, str, str]] = []
        self._checksums = checksums
        self._seconds = seconds

    def ask(
        self, kind: str, heap: str | None, command: str, /, line: str = "", **arguments: Any
    ) -> dict[str, Any]:
        if command == "generate":
            return {}
        variant = arguments["variant"]
        self.asked.append((command, variant, line))
        if command == "check":
            return {"rows": 5, "checksum": self._checksums[line], "seconds": 1.0}
        plan = expected_plan(VARIANTS[variant], Point(**arguments["point"]))
        return {"seconds": self._seconds[line], "stages": [], "operators": plan}

    def replace(self, kind: str, heap: str | None, line: str = "") -> None:
        pass

    def close(self) -> None:
        pass


def measured(tmp_path: Path, **checksums: str) -> tuple[Sessions, list[dict[str, Any]]]:
    """The case on this line and on 4.2, where all takes twice as long."""
    sessions = Sessions({"": "17", "4.2": checksums["newer"]}, {"": 1.0, "4.2": 2.0})
    how = Options(tmp_path, 100, rounds=2, drop_slow=1.5, comet=True, beside=("4.2",))
    return sessions, measure(CASE, sessions, how)


def test_each_line_takes_its_turns(tmp_path: Path) -> None:
    sessions, (ours, newer) = measured(tmp_path, newer="17")
    turns = [(variant, line) for command, variant, line in sessions.asked if command == "run"]
    # After the warm-up, a round with one line beside the other for each variant.
    first = [(name, line) for name in ("sortmerge", "ours") for line in ("", "4.2")]
    # Comet is made for one line.
    everything = [*first, ("comet-sortmerge", ""), ("floor", ""), ("floor", "4.2")]
    assert turns[-14:-7] == everything
    assert turns[-7:] == [*everything[1:], everything[0]]
    assert (ours["label"], newer["label"]) == ("all", "all on Spark 4.2")
    assert {name: facts["min"] for name, facts in ours["variants"].items()} == dict.fromkeys(
        CASE.variants, 1.0
    )
    assert {name: facts["min"] for name, facts in newer["variants"].items()} == {
        "sortmerge": 2.0,
        "ours": 2.0,
        "floor": 2.0,
    }
    assert ours["problems"] == newer["problems"] == []


def test_lines_with_different_answers(tmp_path: Path) -> None:
    _, (ours, newer) = measured(tmp_path, newer="18")
    assert ours["problems"] == [
        f"two all: {name} on Spark 4.2 and sortmerge have different answers: 5 and 5 rows"
        for name in ("sortmerge", "ours")
    ]
    assert newer["problems"] == []


def test_a_line_without_an_environment(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "BENCH", tmp_path / "bench")
    with pytest.raises(SystemExit):
        run.parse(["n2", "--beside", "4.2"])
    assert "make environment jar SPARK=4.2" in capsys.readouterr().err
    python = tmp_path / ".venv-4.2" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    assert run.parse(["n2", "--beside", "4.2"]).beside == ["4.2"]
    with pytest.raises(SystemExit):
        run.parse(["skew-none", "--beside", "4.2"])
    assert "are those of one session" in capsys.readouterr().err


def test_sessions_of_another_line_have_its_jar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for line, scala in (("3.5", "2.12"), ("4.2", "2.13")):
        (tmp_path / f"skewext-spark{line}_{scala}-{__version__}.jar").write_text(line)
    monkeypatch.setattr(_jar, "JAR_DIRECTORY", tmp_path)
    monkeypatch.setenv("SKEWEXT_SPARK_LINE", "3.5")
    # What the workspace sets goes with the test.
    monkeypatch.setenv("SKEWEXT_JAR", "")
    started = {}

    def popen(command: list[str], env: dict[str, str], **_: Any) -> None:
        started[command[0]] = Path(env["SKEWEXT_JAR"]).read_text()
        raise InterruptedError

    monkeypatch.setattr(workers.subprocess, "Popen", popen)
    with workspace(tmp_path / "cache", ["4.2"]) as jars:
        spec = SessionSpec("plain", str(tmp_path / "cache"), 1, "1g", "0", jars=jars)
        for line in ("", "4.2"):
            with pytest.raises(InterruptedError):
                Pool(spec, "1g", 1).ask("plain", None, "versions", line=line)
    assert started == {sys.executable: "3.5", python_of("4.2"): "4.2"}
