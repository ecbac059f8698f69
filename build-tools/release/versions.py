"""Versions: three numbers for a release, and `.dev0` behind those of the next one in between."""

from __future__ import annotations

import re

_RELEASE = re.compile(r"(\d+)\.(\d+)\.(\d+)")
_DEVELOPMENT = ".dev0"


def parsed(version: str) -> tuple[int, ...]:
    """The three numbers of a release; a ValueError for anything else."""
    match = _RELEASE.fullmatch(version)
    if match is None:
        raise ValueError(f"{version!r} is no version; one looks like 0.2.0")
    return tuple(map(int, match.groups()))


def release_of(version: str) -> str:
    """The release that the version is, or that its development leads to."""
    release = version.removesuffix(_DEVELOPMENT)
    parsed(release)
    return release


def development_after(release: str) -> str:
    """The version of what is built after a release: it leads to the next minor one."""
    major, minor, _ = parsed(release)
    return f"{major}.{minor + 1}.0{_DEVELOPMENT}"
