"""Engines other than Spark: they join the same files, in the process of the session."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from tempfile import gettempdir
from typing import TYPE_CHECKING

from harness.case import Point

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class OtherEngine(ABC):
    """Builds the answer of another engine; its time is that of `seconds`."""

    @abstractmethod
    def __call__(self, tables: Sequence[DataFrame], keys: Sequence[str], point: Point) -> DataFrame:
        """The answer, for Spark."""

    @abstractmethod
    def seconds(
        self, tables: Sequence[DataFrame], keys: Sequence[str], cores: int, memory: str
    ) -> float:
        """The time of one run that computes all values and keeps none."""


def answer_file(spark: SparkSession, engine: str) -> str:
    """The file of an answer. The next run of the benchmarks deletes it."""
    return f"{spark.conf.get('spark.local.dir', gettempdir())}/{engine}.parquet"


def files_of(table: DataFrame) -> list[str]:
    """The paths of a table."""
    return [path.removeprefix("file:") for path in table.inputFiles()]
