"""The Spark sessions that variants run in: plain, with Comet, and one that makes the data."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark_skewext import configure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMET_SPARK = "3.5"
COMET = f"org.apache.datafusion:comet-spark-spark{COMET_SPARK}_2.12:0.12.0"
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"


@dataclass(frozen=True)
class SessionSpec:
    """What a worker process is told about the session it shall have."""

    #: "plain", "comet" or "data".
    kind: str
    cache: str
    cores: int
    heap: str
    #: Off the heap, for Comet.
    offheap: str
    comet_jar: str = ""
    conf: dict[str, str] = field(default_factory=dict)
    #: Ours for other lines of Spark than this environment's.
    jars: dict[str, str] = field(default_factory=dict)


def start(spec: SessionSpec) -> SparkSession:
    """Start the session; a process has one."""
    cache = Path(spec.cache)
    settings = {
        "spark.driver.memory": spec.heap,
        # The heap as a whole from the start: what it costs to make it grow is nobody's merit.
        "spark.driver.extraJavaOptions": f"-Xms{spec.heap}",
        "spark.driver.host": "localhost",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(cache / "shuffle"),
        "spark.sql.warehouse.dir": str(cache / "warehouse"),
        # A chain of 32 tables has many stages, and `facts` asks for them afterwards.
        "spark.ui.retainedStages": "50000",
        "spark.ui.retainedJobs": "50000",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
    }
    if spec.kind == "data":
        # As many files as partitions, always.
        settings["spark.sql.adaptive.enabled"] = "false"
        settings["spark.sql.shuffle.partitions"] = "8"
    if spec.kind == "comet":
        settings.update(_comet_settings(spec))
    settings.update(spec.conf)
    return configured(f"local[{spec.cores}]", settings)


def configured(master: str, settings: dict[str, str], log_level: str = "ERROR") -> SparkSession:
    """Start a session with skewext and these settings, without a UI; a process has one."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    builder = SparkSession.builder.master(master).appName("skewext benchmark")
    for key, value in {**quiet, **settings}.items():
        builder = builder.config(key, value)
    spark = configure(builder).getOrCreate()
    spark.sparkContext.setLogLevel(log_level)
    return spark


def _comet_settings(spec: SessionSpec) -> dict[str, str]:
    return {
        "spark.jars": spec.comet_jar,
        # The shuffle manager is made before spark.jars are looked at.
        "spark.driver.extraClassPath": spec.comet_jar,
        "spark.plugins": "org.apache.spark.CometPlugin",
        "spark.shuffle.manager": (
            "org.apache.spark.sql.comet.execution.shuffle.CometShuffleManager"
        ),
        "spark.memory.offHeap.enabled": "true",
        "spark.memory.offHeap.size": spec.offheap,
        "spark.comet.enabled": "true",
        "spark.comet.exec.enabled": "true",
        "spark.comet.exec.shuffle.enabled": "true",
        "spark.comet.exec.shuffle.mode": "auto",
    }


def fetch_comet(cache: Path) -> Path:
    """Get Comet's jar, with its native library inside, from Maven's repository, once."""
    _, artifact, version = COMET.split(":")
    jar = cache / "jars" / f"{artifact}-{version}.jar"
    if not jar.exists():
        if shutil.which("mvn") is None:
            raise FileNotFoundError(f"Comet needs Maven on PATH, or --comet-jar ({COMET})")
        making = cache / "jars" / "making"
        subprocess.run(
            ["mvn", "-q", "-B", _COPY, f"-Dartifact={COMET}", f"-DoutputDirectory={making}"],
            check=True,
        )
        (making / jar.name).rename(jar)
        making.rmdir()
    return jar
