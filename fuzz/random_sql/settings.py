"""Settings of a query, which must not change its answer; and their names for counters."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from stock import INTERPRETED

ANSI = "spark.sql.ansi.enabled"
ADAPTIVE = "spark.sql.adaptive.enabled"
COALESCING = "spark.sql.adaptive.coalescePartitions.enabled"
PARTITIONS = "spark.sql.shuffle.partitions"
BROADCAST = "spark.sql.autoBroadcastJoinThreshold"
ADAPTIVE_BROADCAST = "spark.sql.adaptive.autoBroadcastJoinThreshold"
CODEGEN = "spark.sql.codegen.wholeStage"
FACTORY = "spark.sql.codegen.factoryMode"
HUGE_METHOD = "spark.sql.codegen.hugeMethodLimit"
SKEW_THRESHOLD = "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes"
PARQUET_BATCHES = "spark.sql.parquet.enableVectorizedReader"
ENABLED = "spark.skewext.enabled"

#: Without the first there are no batches of files, so no exchange by column.
_WHOLE_STAGES = {CODEGEN: "true", FACTORY: "NO_CODEGEN"}
_COMPILED = {CODEGEN: "true", FACTORY: "FALLBACK"}
#: Spark gives up stages that are compiled, because each method is too large.
_TOO_LARGE = {**_COMPILED, HUGE_METHOD: "1"}

#: Settings that are seldom not the default: the value, and how often.
_SELDOM = {
    "spark.skewext.multiJoin.grouping": ("sort", 0.1),
    "spark.skewext.bucket.order.enabled": ("false", 0.1),
    "spark.skewext.multiJoin.maxRowsInMemory": ("5", 0.05),
    "spark.skewext.multiJoin.spreadNullKeys.enabled": ("false", 0.05),
    "spark.skewext.shuffle.enabled": ("false", 0.05),
    "spark.skewext.join.enabled": ("false", 0.1),
    "spark.sql.cbo.enabled": ("true", 0.1),
    "spark.sql.inMemoryColumnarStorage.batchSize": ("4", 0.15),
    "spark.sql.inMemoryColumnarStorage.enableVectorizedReader": ("false", 0.04),
    PARQUET_BATCHES: ("false", 0.04),
    "spark.sql.parquet.columnarReaderBatchSize": ("3", 0.15),
    "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning": ("false", 0.1),
    "spark.sql.sources.bucketing.autoBucketedScan.enabled": ("false", 0.1),
    "spark.sql.adaptive.forceOptimizeSkewedJoin": ("true", 0.1),
    "spark.sql.join.preferSortMergeJoin": ("false", 0.05),
}


def random_settings(random: Random) -> dict[str, str]:
    """How Spark runs with the extension, by chance."""

    def true(chance: float) -> str:
        return str(random.random() < chance).lower()

    found = {
        ADAPTIVE: true(0.5),
        PARTITIONS: random.choices(("1", "2", "4", "200"), (20, 50, 29, 0.5))[0],
    }
    ways = (INTERPRETED, _WHOLE_STAGES, _COMPILED, _TOO_LARGE)
    found.update(random.choices(ways, (50, 28, 14, 8))[0])
    if random.random() < 0.25:
        found[BROADCAST] = random.choice(("10MB", "10MB", "1KB"))
    if found[ADAPTIVE] == "true":
        found[COALESCING] = true(0.5)
        if random.random() < 0.2:
            found[ADAPTIVE_BROADCAST] = "10MB"
    found.update({key: value for key, (value, often) in _SELDOM.items() if random.random() < often})
    if random.random() < 0.3:
        found[ANSI] = "true"
    # Of these queries, one in ten has a partition that is split.
    if random.random() < 0.6:
        found.update(_splitting(random))
    return found


def _splitting(random: Random) -> dict[str, str]:
    """What makes a few dozen rows of a key a skewed partition, read from several files."""
    skew = "spark.sql.adaptive.skewJoin"
    return {
        ADAPTIVE: "true",
        PARTITIONS: str(random.randint(2, 4)),
        "spark.sql.files.maxPartitionBytes": "4000",
        "spark.sql.files.openCostInBytes": "1",
        SKEW_THRESHOLD: "200b",
        f"{skew}.skewedPartitionFactor": "1.2",
        "spark.sql.adaptive.advisoryPartitionSizeInBytes": "200b",
        COALESCING: "true" if random.random() < 0.2 else "false",
        "spark.skewext.skew.minGain": "1.0",
        "spark.skewext.skew.maxRereadFactor": "50",
        "spark.skewext.skew.outputSkew.mode": random.choice(("all", "multiJoin")),
    }


def kinds_of(settings: Mapping[str, str]) -> set[str]:
    """The settings that matter, as counters name them; defaults are those of the tests' session."""
    adaptive = settings.get(ADAPTIVE, "true") == "true"
    found = {
        f"adaptive execution: {_on(adaptive)}",
        f"partitions: {settings.get(PARTITIONS, 'default')}",
        f"broadcast threshold: {settings.get(BROADCAST, '-1')}",
        f"ANSI: {_on(settings.get(ANSI) == 'true')}",
        f"evaluation: {_evaluation(settings)}",
    }
    if adaptive:
        found.add(f"coalescing: {_on(settings.get(COALESCING, 'true') == 'true')}")
    if SKEW_THRESHOLD in settings:
        found.add("small partitions count as skewed")
    if ADAPTIVE_BROADCAST in settings:
        found.add("broadcast threshold of adaptive execution: 10MB")
    return found | {f"{key}={settings[key]}" for key in _SELDOM if key in settings}


def _evaluation(settings: Mapping[str, str]) -> str:
    if HUGE_METHOD in settings:
        return "fallback, as code is too large"
    if settings.get(FACTORY) == "FALLBACK":
        return "compiled"
    return f"interpreted, scans of {'rows' if settings.get(CODEGEN) == 'false' else 'columns'}"


def _on(is_on: bool) -> str:
    return "on" if is_on else "off"
