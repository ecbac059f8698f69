"""Real sessions, each in a process of its own, since a JVM cannot be had twice in one."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import pyspark
import pytest
from amount import TEST_ALL
from pyspark.sql import SparkSession

import pyspark_skewext as skewext
from pyspark_skewext import _jar

EXTENSION = "io.github.skewext.SkewExtensions"
SPARK_SUBMIT = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")

# Every script ends with a join that it checks. Rows of Python would start Python's workers, a third
# of the processor time.
JOIN = """
def both(spark):
    return (spark.sql("VALUES (1, 'a'), (2, 'b') AS one(k, a)"),
        spark.sql("VALUES (2, 'c'), (3, 'd') AS two(k, b)"))

def has_all_rows(joined):
    return [tuple(row) for row in joined.collect()] == [
        (1, "a", None), (2, "b", "c"), (3, None, "d")]

def join(spark):
    joined = skewext.multi_full_join(*both(spark), on="k").orderBy("k")
    assert "MultiFullJoin" in joined._jdf.queryExecution().executedPlan().toString()
    assert has_all_rows(joined)
"""

PREAMBLE = (
    """
import sys, threading, warnings
from amount import TEST_ALL
from pyspark.sql import SparkSession
import pyspark_skewext as skewext

warnings.simplefilter("error")
# PySpark 4 imports Jupyter where it is installed, which warns of folders of its own.
warnings.filterwarnings("ignore", "Jupyter is migrating")

def plain():
    return (SparkSession.builder.master("local[1]").config("spark.ui.enabled", False)
        .config("spark.sql.shuffle.partitions", 2))

def jars(spark):
    listed = spark.sparkContext._jsc.sc().listJars().mkString(",")
    return sorted(entry.split("/")[-1] for entry in listed.split(",") if entry)
"""
    + JOIN
)


class RunScript(Protocol):
    """Runs a script and returns what it printed."""

    def __call__(
        self, body: str, command: Sequence[str] = ..., env: Mapping[str, str] | None = ...
    ) -> str: ...


@pytest.fixture
def run(tmp_path: Path) -> RunScript:
    def run_script(
        body: str, command: Sequence[str] = (sys.executable,), env: Mapping[str, str] | None = None
    ) -> str:
        script = tmp_path / "script.py"
        script.write_text(PREAMBLE + body + "\nprint('done')\n")
        python_path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
        done = subprocess.run(
            [*command, str(script)],
            env={
                **os.environ,
                "PYTHONPATH": python_path,
                **(env or {}),
            },
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.rstrip().endswith("done")
        return done.stdout + done.stderr

    return run_script


@pytest.fixture
def users_jar(tmp_path: Path) -> Path:
    path = tmp_path / "users.jar"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("users-resource.txt", "here")
    return path


@pytest.mark.slow
def test_configure_keeps_settings_of_the_environment(
    run: RunScript, users_jar: Path, tmp_path: Path
) -> None:
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "spark-defaults.conf").write_text("spark.sql.extensions no.such.Extension\n")
    run(
        f"""
spark = skewext.configure(plain()).getOrCreate()
assert skewext.is_enabled(spark)
assert spark.conf.get("spark.sql.extensions") == "no.such.Extension,{EXTENSION}"
assert jars(spark) == sorted(["users.jar", skewext.jar_path().split("/")[-1]]), jars(spark)
loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()
assert loader.getResource("users-resource.txt") is not None
join(spark)
""",
        env={
            "SPARK_CONF_DIR": str(conf),
            "PYSPARK_SUBMIT_ARGS": f"--jars {users_jar} pyspark-shell",
        },
    )


@pytest.mark.slow
def test_late_register(run: RunScript) -> None:
    run(
        """
import os
spark = plain().getOrCreate()
assert not skewext.is_enabled(spark)
try:
    join(spark)
    raise SystemExit("no error")
except RuntimeError as error:
    assert "not loaded" in str(error) and "register(spark)" in str(error), error

right = skewext.jar_path()
os.environ["SKEWEXT_JAR"] = "/no/such.jar"
try:
    skewext.register(spark)
    raise SystemExit("no error")
except RuntimeError as error:
    assert "/no/such.jar" in str(error), error
assert spark.range(3).count() == 3
os.environ["SKEWEXT_JAR"] = right

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    skewext.configure(plain())
assert ["already running" in str(each.message) for each in caught] == [True], caught

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    skewext.register(spark)
    skewext.register(spark)
warned = str(caught[0].message)
assert "latest and skew_join work, but the hint SKEWEXT_JOIN, the table functions" in warned, caught
assert skewext.is_enabled(spark)
assert right.split("/")[-1] in jars(spark)
join(spark)
# What the warning names: it works, or is missing.
rows = spark.range(6).selectExpr("id % 3 AS k", "id AS t")
versions = skewext.asof(rows.selectExpr("k", "t AS u"), time="u")
assert skewext.asof_join(rows, versions, on="k", time="t").count() == 6
assert skewext.latest(rows, on="k", by="t").count() == 3
assert skewext.skew_join(rows, rows, "k", technique="broadcast_map").count() == 12
assert spark.sql("SHOW FUNCTIONS LIKE 'skewext*'").count() == 0

# The JVM has a thread of its own for every Python thread.
failures = []
def other():
    try:
        join(spark)
    except BaseException as error:
        failures.append(error)
thread = threading.Thread(target=other)
thread.start()
thread.join()
assert not failures, failures

# A session of the same JVM, started anew, gets all.
spark.stop()
spark = skewext.configure(plain()).getOrCreate()
assert skewext.is_enabled(spark)
assert spark._jvm.io.github.skewext.PythonApi.isExtensionLoaded(spark._jsparkSession)
assert right.split("/")[-1] in jars(spark)
join(spark)
"""
    )


@pytest.mark.slow
def test_spark_submit_with_configure_in_the_script(run: RunScript, users_jar: Path) -> None:
    run(
        """
spark = skewext.configure(SparkSession.builder).getOrCreate()
assert skewext.is_enabled(spark)
assert "users.jar" in jars(spark) and len(jars(spark)) == 2, jars(spark)
join(spark)
""",
        command=[
            SPARK_SUBMIT,
            *("--master", "local[1]", "--conf", "spark.ui.enabled=false"),
            *("--conf", "spark.sql.shuffle.partitions=2"),
            *("--jars", str(users_jar)),
        ],
    )


@pytest.mark.slow
def test_jar_without_the_extension(run: RunScript) -> None:
    run(
        """
spark = plain().config("spark.jars", skewext.jar_path()).getOrCreate()
assert not skewext.is_enabled(spark)
try:
    join(spark)
    raise SystemExit("no error")
except RuntimeError as error:
    assert "spark.sql.extensions" in str(error), error
assert spark.range(3).count() == 3
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    skewext.register(spark)
assert len(caught) == 1
join(spark)
spark.conf.set("spark.skewext.enabled", False)
assert not skewext.is_enabled(spark)
"""
    )


def test_import_without_pyspark(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['pyspark'] = None\n"
        "import pyspark_skewext; print(pyspark_skewext.jar_path())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={
            **os.environ,
            "PYTHONPATH": str(Path(__file__).parents[1]),
            "SKEWEXT_SPARK_LINE": pyspark.__version__,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == skewext.jar_path(), done.stderr


def test_configured_session_warns_of_nothing(spark: SparkSession) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        skewext.configure(SparkSession.builder)
        skewext.register(spark)


def test_is_enabled_follows_the_switch(spark: SparkSession) -> None:
    assert skewext.is_enabled(spark)
    spark.conf.set("spark.skewext.enabled", "false")
    assert not skewext.is_enabled(spark)
    spark.conf.unset("spark.skewext.enabled")
    assert skewext.is_enabled(spark)


@pytest.mark.slow
def test_doctor_and_explain_of_a_stock_session(run: RunScript) -> None:
    """They change nothing: no join is rewritten, and no function is registered."""
    run(
        """
spark = plain().config("spark.sql.autoBroadcastJoinThreshold", -1).getOrCreate()

def states():
    return {part.name: part.reason for part in skewext.doctor(spark).parts}

(reason,) = states().values()
assert "not loaded in this session" in reason, reason
tables = [spark.range(0, n, 1, 2).selectExpr("id AS k", f"id AS v{n}") for n in (7, 8, 9)]
chain = tables[0].join(tables[1], "k", "full").join(tables[2], "k", "full")
explanation = skewext.explain(chain)
(explained,) = explanation.joins
assert explained.origin.text == "the session was started without skewext", explanation
assert "started without skewext" in explanation.notes[0], explanation
assert not skewext.is_enabled(spark) and jars(spark) == [], jars(spark)
assert chain.count() == 9 and "MultiFullJoin" not in chain._jdf.queryExecution().toString()
found = states()
assert len(found) > 10 and set(found.values()) == {"the session was started without skewext"}
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    skewext.register(spark)
assert states()["multi-way joins"] is None and states()["rewritten chains of joins"] is not None
join(spark)
"""
    )


@pytest.mark.slow
def test_doctor_distinguishes_missing_jar_extension_and_name(
    run: RunScript, tmp_path: Path
) -> None:
    copy = tmp_path / "skewext-copy.jar"
    copy.write_bytes(Path(skewext.jar_path()).read_bytes())
    run(
        f"""
from pyspark_skewext import _jvm
name = "io.github.skewext.SkewExtensions"

def check(names, *words):
    builder = plain()
    if names is not None:
        builder = builder.config("spark.sql.extensions", names)
    spark = builder.getOrCreate()
    checkup = skewext.doctor(spark)
    text = str(checkup)
    for word in words:
        assert word in text, text
    assert not checkup.healthy and len(text.splitlines()) == 4, text
    spark.stop()
    return checkup

jar = "spark.jars is ''"
check(None, "The jar and the extension are missing", jar, "spark.sql.extensions is ''", "no jar")
check(name, "Only the jar is missing", jar, name)
check("io.github.skewext.SkewExtension", f"the name of the extension is not {{name}}", jar)

spark = plain().getOrCreate()
_jvm.add_to_class_loader(spark._jvm, skewext.jar_path())
jvm = spark._jvm
spark.stop()
off = "parts  the session was started without skewext"
check(None, off, "The extension is missing: spark.sql.extensions is not set", "jar 0")
check(
    "io.github.skewext.SkewExtension", off, f"and the class is {{name}}", "not set")
check("some.Extension", off, f"spark.sql.extensions is some.Extension, without {{name}}")

# Of a session without a UI, nothing is missing.
spark = plain().config("spark.sql.extensions", name).getOrCreate()
checkup = skewext.doctor(spark)
off = [part for part in checkup.parts if not part.active and part.needed]
assert [part.name for part in off if part.name != "joins in Spark's EXPLAIN"] == [], off
_jvm.add_to_class_loader(jvm, "{copy}")
(note,) = skewext.doctor(spark).notes
assert note.startswith("There are 2 jars of skewext, and only one is used"), note
assert "skewext-copy.jar" in note, note
join(spark)
""".replace('"jar 0"', f'"jar {skewext.__version__}"')
    )


INFO = "spark-version-info.properties"


@pytest.mark.slow
def test_a_class_of_spark_that_a_vendor_has_changed(run: RunScript, tmp_path: Path) -> None:
    """One method has another name, which only splits call: they are off, and all else works."""
    name = "org/apache/spark/MapOutputStatistics.class"
    (core,) = (Path(pyspark.__file__).parent / "jars").glob("spark-core_*.jar")
    with zipfile.ZipFile(core) as stock, zipfile.ZipFile(tmp_path / "v.jar", "w") as vendor:
        vendor.writestr(name, stock.read(name).replace(b"shuffleId", b"shuffleNo"))
        # Releases of Apache Spark are not checked when the extension is loaded.
        vendor.writestr(INFO, f"version={pyspark.__version__}\nurl=https://example.org/spark\n")
    out = run(
        f"""
# Spark itself calls the method to coalesce partitions.
spark = (skewext.configure(plain()).config("spark.driver.extraClassPath", "{tmp_path / "v.jar"}")
    .config("spark.sql.adaptive.coalescePartitions.enabled", False).getOrCreate())
off = {{part.name: part.reason for part in skewext.doctor(spark).parts if not part.active}}
fault = "its classes do not fit this Spark: org.apache.spark.MapOutputStatistics has no method"
assert off["splits of skewed partitions"].startswith(fault), off
assert not {{"multi-way joins", "rewritten chains of joins", "columnar shuffle"}} & set(off), off
join(spark)
"""
    )
    assert out.count("skewext: its package skew does not fit this Spark") == 1, out
    assert out.count("does not fit this Spark") == 1, out


#: The jars of Delta and Iceberg, as `sbt testJars` writes them down.
LAKEHOUSE = (
    Path(__file__).parents[2] / "target" / "spark-3.5" / "lakehouse-jars.txt"
    if pyspark.__version__.startswith("3.5.")
    else Path("none")
)


@pytest.mark.slow
@pytest.mark.skipif(not LAKEHOUSE.is_file(), reason="Delta has no jar here: make jar")
def test_as_an_init_script_of_databricks_does_it(run: RunScript, tmp_path: Path) -> None:
    """A folder of jars on the class path, and the extension beside those of table formats."""
    folder = tmp_path / "databricks" / "jars"
    folder.mkdir(parents=True)
    for jar in [*LAKEHOUSE.read_text().split(","), skewext.jar_path()]:
        (folder / Path(jar).name).symlink_to(jar)
    table = tmp_path / "table"
    run(
        f"""
spark = SparkSession.builder.getOrCreate()
off = {{part.name: part.reason for part in skewext.doctor(spark).parts if not part.active}}
assert set(off) == {{"tab in Spark's UI"}}, off
assert skewext.is_enabled(spark) and jars(spark) == []
join(spark)
spark.range(5).write.format("delta").save("{table}")
assert spark.read.format("delta").load("{table}").count() == 5
""",
        command=[
            SPARK_SUBMIT,
            *("--master", "local[1]", "--conf", "spark.ui.enabled=false"),
            *("--conf", "spark.sql.shuffle.partitions=2"),
            *("--conf", f"spark.driver.extraClassPath={folder}/*"),
            "--conf",
            "spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension,"
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions," + EXTENSION,
            "--conf",
            "spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog",
        ],
    )


#: The jars of other lines of Spark that are there.
OTHERS = [
    jar
    for jar in sorted(_jar.JAR_DIRECTORY.glob("*.jar"))
    if jar.name != Path(skewext.jar_path()).name
]


@pytest.mark.slow
@pytest.mark.skipif(not OTHERS, reason="jars of other lines of Spark are not made: make jars")
def test_a_jar_of_another_line(run: RunScript) -> None:
    """As after an update of PySpark alone; Scala may be another one, too."""
    one_of_each_scala = {jar.name.split("_")[1]: jar for jar in OTHERS}
    for jar in OTHERS if TEST_ALL else one_of_each_scala.values():
        out = run(
            """
from pyspark.errors import PySparkRuntimeError

spark = skewext.configure(plain()).getOrCreate()

def refused(call):
    try:
        call()
    except PySparkRuntimeError as error:
        print(str(error).splitlines()[0])

refused(lambda: skewext.multi_full_join(*both(spark), on="k"))
refused(lambda: skewext.skew_join(*both(spark), on="k", technique="salted"))
refused(lambda: skewext.skew_report(both(spark)[0], on="k"))
refused(lambda: skewext.register(spark))
assert not skewext.is_enabled(spark)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    skewext.configure(SparkSession.builder)
assert any("running without skewext" in str(one.message) for one in told), told
# Spark's own queries are what they are, hints of ours among them.
one, two = both(spark)
joined = one.join(two.hint("skewext_join", "salted"), "k", "full").orderBy("k")
assert has_all_rows(joined)
(note,) = skewext.explain(joined).notes
print(note)
checkup = skewext.doctor(spark)
(part,) = checkup.parts
print(part.reason)
line = f"for Spark {checkup.spark_line}, on Spark {spark.version}"
assert checkup.jar == skewext.__version__ and line in str(checkup), checkup
""",
            env={"SKEWEXT_JAR": str(jar)},
        )
        line = jar.name.split("spark")[1].split("_")[0]
        told = out[: out.index("done")].splitlines()
        assert len(told) == 6, out
        for message in told:
            assert f"was built for Spark {line} but this is Spark" in message
        # One warning, and nothing of classes that are not there.
        assert out.count("is built for Spark") == 1, out
        assert "java.lang" not in out, out
