"""Spark Connect: the tests of answers once more, through a local server.

The client is in an environment of its own, which has no JVM. As servers and clients take a while to
start, this is for `make test-line`, which CI runs for the newest line, and for `make test-all`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest
from amount import TEST_ALL, TEST_LINE
from servers import free_port, listening

import pyspark_skewext as skewext

PYTHON_FOLDER = Path(__file__).parents[1]
LINE = ".".join(pyspark.__version__.split(".")[:2])
#: With a client of Spark Connect alone; `make test-line` makes it.
CLIENT = PYTHON_FOLDER.parent / f".venv-client-{LINE}" / "bin" / "python"

#: The server's jars where PySpark does not have them, as `sbt testJars` writes them down.
JARS = PYTHON_FOLDER.parent / "target" / f"spark-{LINE}" / "connect-jars.txt"

pytestmark = [
    pytest.mark.skipif(not (TEST_ALL or TEST_LINE), reason="takes long"),
    pytest.mark.skipif(not CLIENT.exists(), reason="there is no client: `make test-all`"),
]

SUITE = [
    *("tests/test_joins.py", "tests/test_errors.py", "tests/test_asof.py", "tests/test_doctor.py"),
    *("tests/connect/buckets.py", "tests/connect/with_extension.py"),
]
if TEST_ALL:
    SUITE += ["tests/test_property.py", "tests/test_skew_join.py", "tests/test_explain.py"]
    SUITE += ["tests/test_skew_report.py"]


def without_spark() -> dict[str, str]:
    """The environment with nothing of Spark's but how fast the JVM is: see conftest."""
    left = "SPARK_SUBMIT_OPTS"
    return {k: v for k, v in os.environ.items() if k == left or not k.startswith("SPARK")}


def run(python: Path | str, address: str, *arguments: str) -> int:
    """Run tests with a session on that server; how many passed."""
    done = subprocess.run(
        [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=PYTHON_FOLDER,
        env={
            **without_spark(),
            "PYTHONPATH": str(PYTHON_FOLDER),
            "SKEWEXT_TEST_REMOTE": address,
            # Slow tests are for sessions in this process, unless all tests run.
            "SKEWEXT_TEST_QUICK": "1",
        },
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout[-20000:] + done.stderr[-5000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None, done.stdout
    return int(passed.group(1))


@contextmanager
def server(
    folder: Path, *settings: str, jars: Sequence[str] = (), master: str = "local[2]"
) -> Iterator[str]:
    """Start one, and give its address when it listens."""
    port = free_port()
    jars = [*jars, *(JARS.read_text().split(",") if JARS.exists() else [])]
    settings = (
        *settings,
        f"spark.jars={','.join(jars)}",
        f"spark.connect.grpc.binding.port={port}",
        f"spark.sql.warehouse.dir={folder / 'warehouse'}",
        # As in the tests' classic session.
        "spark.sql.shuffle.partitions=3",
        "spark.sql.autoBroadcastJoinThreshold=-1",
        "spark.ui.enabled=false",
    )
    command = [str(Path(sys.executable).with_name("spark-submit")), "--master", master]
    command += [word for setting in settings for word in ("--conf", setting)]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    command += ["spark-internal"]
    # Executors of a local cluster keep their files in the folder.
    env = {**without_spark(), "SPARK_WORKER_DIR": str(folder)}
    with listening(command, port, folder, env):
        yield f"sc://localhost:{port}"


EXTENSION = "spark.sql.extensions=io.github.skewext.SkewExtensions"


def test_a_server_with_the_extension(tmp_path: Path) -> None:
    with server(tmp_path, EXTENSION, jars=[skewext.jar_path()]) as address:
        assert run(CLIENT, address, *SUITE) > (150 if TEST_ALL else 100)


def test_a_server_with_executors(tmp_path: Path) -> None:
    """Tasks of Connect sessions load classes by loaders of their own, which must find the jar."""
    master = "local-cluster[2,1,1024]"
    with server(tmp_path, EXTENSION, jars=[skewext.jar_path()], master=master) as address:
        assert run(CLIENT, address, "tests/test_joins.py", "-k", "test_how") == 6


def test_a_server_without(tmp_path: Path) -> None:
    with server(tmp_path) as address:
        assert run(CLIENT, address, "tests/connect/without_extension.py") == 10


@pytest.mark.skipif(LINE == "3.5", reason="PySpark 3.5 does not have the server's jar")
def test_a_server_that_pyspark_starts() -> None:
    assert run(sys.executable, "local[2]", "tests/test_joins.py", "-k", "test_how") == 6
