"""What a release makes of the changelog; `make release DRY_RUN=1` makes all its files on trial."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from changelog import notes, parsed, released, section
from release_options import parse

ROOT = Path(__file__).parents[2]

BEFORE = """\
# Changelog

## [Unreleased]

### Added

- A join.

## [0.1.0] - 2024-01-01

- All.
"""


def test_unreleased_becomes_the_section_of_the_version() -> None:
    after = released(BEFORE, "0.2.0", "2025-02-03")
    assert after.startswith(
        "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2025-02-03\n\n### Added\n"
    )
    assert section(after, "Unreleased") == ""
    assert section(after, "0.2.0") == "### Added\n\n- A join."
    assert section(after, "0.1.0") == "- All."


@pytest.mark.parametrize(
    ("text", "version", "says"),
    [
        (BEFORE, "0.2", "no version"),
        (BEFORE, "v0.2.0", "no version"),
        (BEFORE, "0.1.0", "already"),
        (BEFORE.replace("- A join.", "").replace("### Added", ""), "0.2.0", "nothing to release"),
        ("# Changelog\n", "0.2.0", "no section"),
    ],
)
def test_what_is_refused(text: str, version: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        released(text, version, "2025-02-03")


def test_versions_are_compared_by_numbers() -> None:
    assert parsed("0.10.0") > parsed("0.9.1")


def test_notes_have_the_section_and_the_checksums() -> None:
    text = notes(BEFORE, "0.1.0", {"b.jar": "22", "a.whl": "11"})
    assert "- All." in text
    assert "- A join." not in text
    assert text.index("| `a.whl` | `11` |") < text.index("| `b.jar` | `22` |")


def test_the_changelog_of_the_tree_can_be_released_or_was() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    version = (ROOT / "version.txt").read_text(encoding="utf-8").strip()
    if f"## [{version}]" in text:
        assert section(text, version)
    else:
        assert section(released(text, "999.0.0", "2025-02-03"), "999.0.0")


@pytest.mark.parametrize(
    ("variables", "version", "dry", "skips", "several"),
    [
        (["VERSION=9.8.7"], "9.8.7", False, False, True),
        (["VERSION=9.8.7", "SKIP_TESTS=1"], "9.8.7", False, True, True),
        (["DRY_RUN=1"], None, True, False, False),
        (["DRY_RUN=1", "ALL_LINES=1"], None, True, False, True),
    ],
)
def test_what_make_asks_for(
    variables: list[str], version: str | None, dry: bool, skips: bool, several: bool
) -> None:
    made = subprocess.run(
        ["make", "-n", "release", *variables], cwd=ROOT, check=True, text=True, capture_output=True
    )
    command = made.stdout.replace("\\\n", " ")
    (line,) = (line for line in command.splitlines() if "release.py" in line)
    options = parse(line.split("release.py", 1)[1].split())
    assert (options.version, options.dry_run, options.skip_tests) == (version, dry, skips)
    assert (len(options.lines) > 1) == several
