"""The directory in which benchmarks keep data and logs; one run at a time has it."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pyspark_skewext import jar_path


class BusyError(Exception):
    """Another run has it, and the figures of both would be worthless."""


@contextmanager
def workspace(cache: Path, beside: Sequence[str] = ()) -> Iterator[dict[str, str]]:
    """Keep other runs out, and have all sessions use a copy of the jar as it is now.

    Gives such copies for other lines of Spark, too.
    """
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BusyError(
                "Another run is under way: the figures of both would be worthless."
            ) from None
        # Shuffle files of a run that was killed.
        shutil.rmtree(cache / "shuffle", ignore_errors=True)
        # A build meanwhile must not change what is measured.
        jars = {line: _copy(jar_path(line), cache) for line in beside}
        os.environ["SKEWEXT_JAR"] = _copy(jar_path(), cache)
        yield jars


def _copy(jar: str, cache: Path) -> str:
    copy = cache / "jars" / Path(jar).name
    copy.parent.mkdir(exist_ok=True)
    shutil.copyfile(jar, copy)
    return str(copy)
