"""What a release makes of changelog and version; `make release DRY_RUN=1` builds on trial."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path
from types import ModuleType
from unittest.mock import Mock

import pytest
from changelog import notes, released, section, supported
from release_options import parse
from versions import development_after, parsed, release_of

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
def test_rejects_versions_and_changelogs(text: str, version: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        released(text, version, "2025-02-03")


def test_one_supported_version_is_replaced() -> None:
    with pytest.raises(ValueError, match=r"SECURITY\.md"):
        supported("| 0.1.x | yes |\n| 0.2.x | yes |\n", "0.3.0")


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
    elif section(text, "Unreleased"):
        assert section(released(text, "999.0.0", "2025-02-03"), "999.0.0")


def test_unreleased_code_has_a_development_version() -> None:
    """The wheel said 0.2.0 though it had what came after."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    version = (ROOT / "version.txt").read_text(encoding="utf-8").strip()
    if section(text, "Unreleased"):
        assert version == f"{release_of(version)}.dev0"
        assert f"## [{release_of(version)}]" not in text


def test_development_versions() -> None:
    assert development_after("0.2.0") == "0.3.0.dev0"
    assert development_after("1.9.3") == "1.10.0.dev0"
    assert release_of("0.3.0.dev0") == "0.3.0"
    assert release_of("0.3.0") == "0.3.0"
    for wrong in ("0.3.0.dev1", "0.3", "0.3.0.dev0.dev0"):
        with pytest.raises(ValueError, match="no version"):
            release_of(wrong)
    with pytest.raises(ValueError, match="no version"):
        released(BEFORE, "0.3.0.dev0", "2025-02-03")


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module, for a repository of its own that builds nothing."""
    # What bom needs is in the environment of `make release` alone.
    monkeypatch.setitem(sys.modules, "bom", Mock())
    monkeypatch.delitem(sys.modules, "release", raising=False)
    import release

    for variable in ("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"):
        monkeypatch.setenv(variable, "a test")
    for variable in ("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"):
        monkeypatch.setenv(variable, "test@example.org")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setattr(release, "ROOT", tmp_path)
    (tmp_path / "version.txt").write_text("0.2.0.dev0\n")
    (tmp_path / "CHANGELOG.md").write_text(BEFORE)
    (tmp_path / "SECURITY.md").write_text("| Version | Supported |\n|---|---|\n| 0.1.x | yes |\n")
    release.git("init", "--quiet")
    release.git("add", ".")
    release.git("commit", "--quiet", "-m", "All")
    return release


def test_a_release_is_followed_by_a_development_version(
    release: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    built = []

    def build(out: Path, version: str, lines: list[str]) -> None:
        built.append((version, (tmp_path / "version.txt").read_text(), lines))

    monkeypatch.setattr(release, "build", build)
    monkeypatch.setattr(release, "describe", Mock())
    release.release("0.2.0", ["3.5"], tests=False)
    assert built == [("0.2.0", "0.2.0\n", ["3.5"])]
    subjects = release.git("log", "--format=%s").splitlines()
    assert subjects == ["Begin 0.3.0.dev0", "Release 0.2.0", "All"]
    assert release.git("show", "v0.2.0:version.txt") == "0.2.0"
    assert "## [0.2.0] - " in release.git("show", "v0.2.0:CHANGELOG.md")
    assert release.git("show", "v0.2.0:SECURITY.md").endswith("|---|---|\n| 0.2.x | yes |")
    assert (tmp_path / "version.txt").read_text() == "0.3.0.dev0\n"
    assert release.git("status", "--porcelain") == ""


def test_a_release_that_fails_leaves_the_tree_as_it_was(
    release: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(release, "build", Mock(side_effect=OSError("no space")))
    with pytest.raises(OSError, match="no space"):
        release.release("0.2.0", ["3.5"], tests=False)
    assert release.git("log", "--format=%s") == "All"
    assert release.git("tag") == release.git("status", "--porcelain") == ""


def test_a_dry_run_builds_the_version_that_is_there(
    release: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    build, describe = Mock(), Mock()
    monkeypatch.setattr(release, "build", build)
    monkeypatch.setattr(release, "describe", describe)
    release.dry_run(["3.5"])
    assert build.call_args.args[1] == "0.2.0.dev0"
    assert describe.call_args.args[1] == "0.2.0"
    assert section(describe.call_args.args[2], "0.2.0") == "### Added\n\n- A join."
    assert release.git("status", "--porcelain") == ""


def test_a_source_distribution_has_the_same_bytes_each_time(
    release: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1262304000")
    made = []
    for number in (1, 2):
        folder = tmp_path / str(number) / "x"
        folder.mkdir(parents=True)
        names = ["a", "b"] if number == 1 else ["b", "a"]
        sdist = tmp_path / f"{number}.tar.gz"
        with tarfile.open(sdist, "w:gz") as packing:
            for name in names:
                (folder / name).write_text(name * 3)
                os.utime(folder / name, (number, number))
                packing.add(folder / name, f"x/{name}")
        release.repacked(sdist)
        made.append(sdist.read_bytes())
    assert made[0] == made[1]
    with tarfile.open(tmp_path / "1.tar.gz") as packed:
        content = packed.extractfile("x/b")
        assert content is not None and content.read() == b"bbb"


@pytest.mark.parametrize(
    ("variables", "version", "dry", "skips", "several"),
    [
        (["VERSION=9.8.7"], "9.8.7", False, False, True),
        (["VERSION=9.8.7", "SKIP_TESTS=1"], "9.8.7", False, True, True),
        (["DRY_RUN=1"], None, True, False, False),
        (["DRY_RUN=1", "ALL_LINES=1"], None, True, False, True),
    ],
)
def test_options_that_make_passes(
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
    # Those that are compiled by an environment's PySpark have it first.
    before, _, _ = command.partition("release.py")
    assert "environment SPARK=$line" in before
    assert ("for line in ; do" in before) != several
