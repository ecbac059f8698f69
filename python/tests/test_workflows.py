"""The workflows call targets of the Makefile that are there, and actions by their commit."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / ".github").rglob("*.yml"))
STEPS = [file for file in FILES if file.parent.name in ("workflows", "setup")]
_RUN = re.compile(r"^\s*(?:- )?run: (.*)$", re.MULTILINE)
_USES = re.compile(r"^\s*(?:- )?uses: (.*)$", re.MULTILINE)
_PINNED = re.compile(r"[\w-]+/[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")


def targets() -> set[str]:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z][a-z-]*):(?!=)", text, re.MULTILINE))


def lines_of_spark() -> set[str]:
    text = (ROOT / "project" / "SparkVersions.scala").read_text(encoding="utf-8")
    return set(re.findall(r'SparkLine\("([\d.]+)"', text))


def test_there_are_workflows() -> None:
    assert {"ci.yml", "nightly.yml", "site.yml", "release.yml"} <= {file.name for file in STEPS}


@pytest.mark.parametrize("file", STEPS, ids=lambda file: file.name)
def test_steps_run_targets_of_the_makefile(file: Path) -> None:
    commands = _RUN.findall(file.read_text(encoding="utf-8"))
    called = [re.match(r"make ([a-z-]+)( |$)", command) for command in commands]
    assert None not in called
    assert {match[1] for match in called if match} - targets() == set()


@pytest.mark.parametrize("file", STEPS, ids=lambda file: file.name)
def test_actions_are_pinned_by_commit(file: Path) -> None:
    used = _USES.findall(file.read_text(encoding="utf-8"))
    assert used
    assert [
        name for name in used if not name.startswith("./") and not _PINNED.fullmatch(name)
    ] == []


def test_all_lines_of_spark_are_tested() -> None:
    ci = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert set(re.findall(r'spark: "([\d.]+)"', ci)) == lines_of_spark()
    nightly = (ROOT / ".github" / "workflows" / "nightly.yml").read_text(encoding="utf-8")
    (lines,) = re.findall(r"spark: \[(.*)\]", nightly)
    assert {line.strip('" ') for line in lines.split(",")} == lines_of_spark()


def test_the_files_are_yaml() -> None:
    for file in FILES:
        assert yaml.safe_load(file.read_text(encoding="utf-8"))
