"""One Spark session for all tests and for the examples in docstrings."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from amount import TEST_QUICK, TEST_SLOW
from pyspark.sql import SparkSession
from stock import INTERPRETED, QUICK_JVM, changed

import pyspark_skewext as skewext

ROOT = Path(__file__).resolve().parents[1]

# Python workers must be of the driver's version.
os.environ["PYSPARK_PYTHON"] = sys.executable
# Python workers import the functions of tests and of random queries from here.
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(ROOT / "python" / "tests"), str(ROOT / "fuzz"), os.environ.get("PYTHONPATH", "")]
).rstrip(os.pathsep)

#: What build-tools/class_archive.py has written for this line of Spark, if it has.
CLASS_ARCHIVE = (
    ROOT / "target" / f"spark-{'.'.join(pyspark.__version__.split('.')[:2])}" / "classes.jsa"
)

# Also for sessions of their own.
OPTIONS = [
    *QUICK_JVM,
    "-Dspark.executor.extraJavaOptions=-XX:TieredStopAtLevel=1",
    # Memory that a task has not given back fails the task, as in Spark's own tests.
    "-Dspark.unsafe.exceptionOnMemoryLeak=true",
    # Each query, and each step of an adaptive one, tells listeners its plan as text.
    "-Dspark.sql.ui.explainMode=simple",
    *(f"-D{key}={value}" for key, value in INTERPRETED.items()),
]
if CLASS_ARCHIVE.is_file() and " " not in str(CLASS_ARCHIVE):
    # A JVM with another class path starts without it, and has nothing to say about that.
    OPTIONS += [f"-XX:SharedArchiveFile={CLASS_ARCHIVE}", "-Xlog:cds*=off"]
os.environ.setdefault("SPARK_SUBMIT_OPTS", " ".join(OPTIONS))

#: Files whose queries CI compiles, as users' are: they are about answers, and nothing
#: else. Generated code by itself is for the Scala suites.
COMPILED = {"test_joins.py", "test_property.py", "test_random_sql.py", "test_tpcds.py"}
CODEGEN = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}


#: Measured seconds by file. The longest files start first: started last, one would keep a process
#: busy while the others are idle.
SECONDS = {
    name: int(seconds)
    for line in (ROOT / "build-tools" / "test_seconds.tsv").read_text("utf-8").splitlines()
    for name, seconds in [line.split("\t")]
}

#: The server of the tests' session, if it is one of Spark Connect: see test_connect.py.
REMOTE = os.environ.get("SKEWEXT_TEST_REMOTE")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with what takes longest; leave out what is slow, or what the session cannot do."""
    items.sort(key=lambda item: -SECONDS.get(item.path.name, 0))
    if TEST_QUICK:
        slow = [item for item in items if _is_slow(item)]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in slow]
    for item in items:
        classic = item.get_closest_marker("classic")
        if REMOTE and classic is not None:
            item.add_marker(pytest.mark.skip(reason=f"not with Spark Connect: {classic.args[0]}"))


def _is_slow(item: pytest.Item) -> bool:
    mark = item.get_closest_marker("slow")
    return mark is not None and (not mark.args or item.callspec.id in mark.args)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    if REMOTE:
        builder = SparkSession.builder.remote(REMOTE)
        # That of an address runs already.
        builder = builder if "://" in REMOTE else skewext.configure(builder)
        session = builder.getOrCreate()
    else:
        session = classic_session(tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def _codegen(request: pytest.FixtureRequest) -> Iterator[None]:
    compiled = TEST_SLOW and not REMOTE and request.path.name in COMPILED
    if not compiled or "spark" not in request.fixturenames:
        yield
        return
    spark: SparkSession = request.getfixturevalue("spark")
    with changed(spark, CODEGEN):
        yield


def classic_session(home: Path) -> SparkSession:
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("tests of pyspark_skewext")
        .config("spark.ui.enabled", False)
        .config("spark.ui.showConsoleProgress", False)
        .config("spark.sql.shuffle.partitions", 3)
        .config("spark.default.parallelism", 2)
        .config("spark.driver.memory", "1g")
        # A barrier stage that has more tasks than slots fails at once, and not after ten minutes.
        .config("spark.scheduler.barrier.maxConcurrentTasksCheck.maxFailures", 1)
        .config("spark.scheduler.barrier.maxConcurrentTasksCheck.interval", "1s")
        .config("spark.sql.warehouse.dir", str(home / "warehouse"))
        # Small tables would otherwise be broadcast where tests look at shuffles.
        .config("spark.sql.autoBroadcastJoinThreshold", -1)
    )
    session = skewext.configure(builder).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


@pytest.fixture(autouse=True)
def _names_for_examples(
    request: pytest.FixtureRequest, doctest_namespace: dict[str, object]
) -> None:
    if isinstance(request.node, pytest.DoctestItem):
        doctest_namespace["spark"] = request.getfixturevalue("spark")
        doctest_namespace["skewext"] = skewext
