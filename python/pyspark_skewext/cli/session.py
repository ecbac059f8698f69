"""The Spark session of a command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark_skewext.cli.request import SessionOptions
from pyspark_skewext.session import configure, is_enabled, register

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def session(command: str, options: SessionOptions) -> Iterator[SparkSession]:
    """Give a session with the extension: a new one, or the one that runs already."""
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        if not is_enabled(running):
            register(running)
        yield running
        return
    # Spark's own progress bar would write over ours.
    builder = SparkSession.builder.appName(f"pyspark_skewext {command}").config(
        "spark.ui.showConsoleProgress", False
    )
    if options.master is not None:
        builder = builder.master(options.master)
    for key, value in options.conf.items():
        builder = builder.config(key, value)
    spark = configure(builder).getOrCreate()
    try:
        if not options.verbose:
            spark.sparkContext.setLogLevel("ERROR")
        yield spark
    finally:
        spark.stop()
