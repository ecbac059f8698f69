"""One run of benchmarks at a time, with a jar that no build changes."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.measure import progress
from pyspark_skewext import jar_path


@contextmanager
def alone(cache: Path) -> Iterator[bool]:
    """Whether no other run uses the cache; then none can start."""
    (cache / "jars").mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            progress("Another run is under way: the figures of both would be worthless.")
            yield False
            return
        # Shuffle files of a run that was killed.
        shutil.rmtree(cache / "shuffle", ignore_errors=True)
        # A build during the run must not change the jar.
        os.environ["SKEWEXT_JAR"] = str(shutil.copy(jar_path(), cache / "jars"))
        yield True
