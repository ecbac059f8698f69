"""Texts of a release: a section made of what stands under "Unreleased", and who gets fixes."""

from __future__ import annotations

import re

from versions import parsed

_UNRELEASED = "## [Unreleased]"


def section(text: str, name: str) -> str:
    """What stands under a heading of second order, without the heading."""
    found = re.search(rf"^## \[{re.escape(name)}\][^\n]*\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    if found is None:
        raise ValueError(f"CHANGELOG.md has no section [{name}]")
    return found[1].strip()


def released(text: str, version: str, day: str) -> str:
    """The changelog with what is unreleased as the section of a version, and nothing unreleased."""
    parsed(version)
    if not section(text, "Unreleased"):
        raise ValueError("CHANGELOG.md has nothing under Unreleased: there is nothing to release")
    if f"## [{version}]" in text:
        raise ValueError(f"CHANGELOG.md has a section [{version}] already")
    return text.replace(_UNRELEASED, f"{_UNRELEASED}\n\n## [{version}] - {day}", 1)


def supported(text: str, version: str) -> str:
    """SECURITY.md with the minor version of a release as the one that gets fixes."""
    major, minor, _ = parsed(version)
    row = f"| {major}.{minor}.x | yes |"
    changed, rows = re.subn(r"^\| \d+\.\d+\.x \| yes \|$", row, text, flags=re.M)
    if rows != 1:
        raise ValueError("SECURITY.md does not have one supported version")
    return changed


def notes(text: str, version: str, files: dict[str, str]) -> str:
    """The notes of a release: its section, and what it consists of with checksums."""
    table = "\n".join(f"| `{name}` | `{digest}` |" for name, digest in sorted(files.items()))
    return (
        f"# skewext {version}\n\n{section(text, version)}\n\n"
        f"## Files\n\n| File | SHA-256 |\n|---|---|\n{table}\n"
    )
