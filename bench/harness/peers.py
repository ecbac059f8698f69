"""As-of joins by other packages from PyPI, of the same files.

`requirements-peers.txt` has them. They are imported when their variants run, because a benchmark
works without them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from tempfile import gettempdir, mkdtemp
from typing import TYPE_CHECKING, Any

from harness.case import Point
from harness.other import OtherEngine, answer_file, files_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PACKAGES = {"tempo": "dbl-tempo", "feast": "feast", "polars": "polars"}
"""The families of these variants, and their packages."""


def by_tempo(tables: Sequence[DataFrame], keys: Sequence[str], _: Point) -> DataFrame:
    """A chain of tempo's `asofJoin`, which sorts a union of two tables."""
    from tempo import TSDF

    # Tempo wants one name of all times. It puts a prefix before all names of the right table.
    joined, *others = (
        TSDF(
            each.withColumnRenamed("t0_at", "at").withColumnsRenamed(
                {name: name.removeprefix(f"t{n}_") for name in each.columns if n > 0}
            ),
            ts_col="at",
            partition_cols=list(keys),
        )
        for n, each in enumerate(tables)
    )
    for n, versions in enumerate(others, 1):
        joined = joined.asofJoin(versions, right_prefix=f"t{n}")
    found: DataFrame = joined.df
    return found.withColumnRenamed("at", "t0_at")


def by_feast(tables: Sequence[DataFrame], keys: Sequence[str], _: Point) -> DataFrame:
    """The historical features of Feast's Spark store: each table of versions is a feature view."""
    from feast import Entity, FeatureStore, FeatureView, Field, RepoConfig, types
    from feast.infra.offline_stores.contrib.spark_offline_store.spark_source import SparkSource
    from feast.value_type import ValueType

    of_spark = {"bigint": types.Int64, "string": types.String, "timestamp": types.UnixTimestamp}
    (key,) = keys
    entity = Entity(name=key, join_keys=[key], value_type=ValueType.INT64)
    views, features = [], []
    for n, each in enumerate(tables):
        each.createOrReplaceTempView(f"feast_{n}")
        if n > 0:
            # Feast does not return the column of the time: this one is there twice.
            query = f"SELECT *, t{n}_at AS valid_from FROM feast_{n}"
            source = SparkSource(name=f"s{n}", query=query, timestamp_field="valid_from")
            schema = [Field(name=name, dtype=of_spark[kind]) for name, kind in each.dtypes]
            views.append(
                FeatureView(
                    name=f"t{n}", entities=[entity], ttl=timedelta(0), schema=schema, source=source
                )
            )
            features += [f"t{n}:{name}" for name in each.columns if name != key]
    registry = mkdtemp(dir=tables[0].sparkSession.conf.get("spark.local.dir", gettempdir()))
    store = FeatureStore(
        config=RepoConfig(
            project="bench",
            registry=f"{registry}/registry.db",
            provider="local",
            offline_store={"type": "spark"},
            online_store=None,
            entity_key_serialization_version=3,
        )
    )
    store.apply([entity, *views])
    spine = "SELECT *, t0_at AS event_timestamp FROM feast_0"
    found: DataFrame = store.get_historical_features(
        entity_df=spine, features=features
    ).to_spark_df()
    return found.drop("event_timestamp")


@dataclass(frozen=True)
class ByPolars(OtherEngine):
    """The answer of Polars' `join_asof`."""

    def __call__(self, tables: Sequence[DataFrame], keys: Sequence[str], _: Point) -> DataFrame:
        """The answer, through a file."""
        spark = tables[0].sparkSession
        path = answer_file(spark, "polars")
        polars, joined = self._joined(tables, keys)
        # Spark's times are of 96 bits in a file, and nanoseconds in Polars. Spark reads
        # microseconds only.
        times = polars.selectors.datetime().dt.cast_time_unit("us")
        joined.with_columns(times).sink_parquet(path)
        return spark.read.parquet(path)

    def seconds(
        self, tables: Sequence[DataFrame], keys: Sequence[str], cores: int, _: str
    ) -> float:
        """As DuckDB, Polars has no `noop` sink: a sum of hashes reads all values.

        Polars has no limit of its memory.
        """
        os.environ.setdefault("POLARS_MAX_THREADS", str(cores))
        begin = time.perf_counter()
        polars, joined = self._joined(tables, keys)
        joined.select(polars.all().hash().sum()).collect(engine="streaming")
        return time.perf_counter() - begin

    def _joined(self, tables: Sequence[DataFrame], keys: Sequence[str]) -> tuple[Any, Any]:
        """The module and the lazy join, whose inputs must be in the order of their times."""
        import polars

        # The order is there. Polars would warn that it does not look for it within keys.
        how: dict[str, Any] = {"by": list(keys), "coalesce": False, "check_sortedness": False}
        joined = None
        for n, each in enumerate(tables):
            frame = polars.scan_parquet(files_of(each)).sort(f"t{n}_at")
            if joined is not None:
                frame = joined.join_asof(frame, left_on="t0_at", right_on=f"t{n}_at", **how)
            joined = frame
        return polars, joined
