"""The built wheel in a virtual environment of its own, used as its users do.

`make test-python` builds the wheel and has pytest collect this file; pytest by itself does not.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyspark
import pytest

PYTHON_FOLDER = Path(__file__).parents[1]
VERSION = (PYTHON_FOLDER.parent / "version.txt").read_text().strip()

# PySpark 3.5 imports distutils, which left Python with 3.12; setuptools carries a copy.
PYSPARK = ["pyspark", "py4j"]
if sys.version_info >= (3, 12):
    PYSPARK += ["setuptools", "_distutils_hack", "distutils-precedence.pth"]

# A key of all three, keys of one or two, and null keys, which match nothing.
JOIN = """
import json
import sys
import warnings

from pyspark.sql import SparkSession

import pyspark_skewext as skewext

builder = SparkSession.builder.config("spark.ui.enabled", "false")
builder = builder.config("spark.sql.shuffle.partitions", "4")
if sys.argv[1] == "configure":
    builder = skewext.configure(builder.master("local[2]"))
spark = builder.getOrCreate()
with warnings.catch_warnings():
    # The session lacks nothing.
    warnings.simplefilter("error")
    skewext.configure(SparkSession.builder)

a = spark.sql("SELECT * FROM VALUES (1, 'a1'), (2, 'a2'), (NULL, 'a0') AS t(k, a)")
b = spark.sql("SELECT * FROM VALUES (1, 'b1'), (3, 'b3'), (NULL, 'b0') AS t(k, b)")
c = spark.sql("SELECT * FROM VALUES (1, 'c1'), (3, 'c3'), (4, 'c4') AS t(k, c)")
joined = skewext.multi_full_join(a, b, c, on="k")
print(
    json.dumps(
        {
            "enabled": skewext.is_enabled(spark),
            "operator": "MultiFullJoin" in joined._jdf.queryExecution().executedPlan().toString(),
            "columns": joined.columns,
            "rows": [list(row) for row in joined.collect()],
        }
    )
)
spark.stop()
"""

ROWS = [
    [1, "a1", "b1", "c1"],
    [2, "a2", None, None],
    [3, None, "b3", "c3"],
    [4, None, None, "c4"],
    [None, "a0", None, None],
    [None, None, "b0", None],
]


@dataclass
class Environment:
    """A virtual environment that holds the wheel, and a folder to run in, away from the sources."""

    folder: Path

    def run(self, *command: str) -> str:
        """Run a command as in the activated environment and return what it prints."""
        leave = ("PYTHON", "PYSPARK", "SPARK", "SKEWEXT", "VIRTUAL_ENV")
        env = {name: value for name, value in os.environ.items() if not name.startswith(leave)}
        env["PATH"] = f"{self.folder / 'bin'}{os.pathsep}{env['PATH']}"
        # Only how fast the JVM is: see conftest.
        env["SPARK_SUBMIT_OPTS"] = os.environ["SPARK_SUBMIT_OPTS"]
        cwd = self.folder / "run"
        cwd.mkdir(exist_ok=True)
        done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True)
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def python(self, code: str) -> str:
        return self.run("python", "-c", code).strip()


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    wheel = PYTHON_FOLDER / "dist" / f"pyspark_skewext-{VERSION}-py3-none-any.whl"
    assert wheel.exists(), f"{wheel} is missing: `make wheel` builds it"
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    environment = Environment(folder)
    site = environment.python("import sysconfig; print(sysconfig.get_path('purelib'))")
    install = ("-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-index")
    # What the wheel itself needs is nothing, as a test below says.
    subprocess.run([sys.executable, *install, "--no-deps", "--target", site, wheel], check=True)
    # To install PySpark takes longer than all tests here, and it is not what they are about.
    for needed in PYSPARK:
        (Path(site) / needed).symlink_to(Path(pyspark.__file__).parents[1] / needed)
    (folder / "run" / "join.py").write_text(JOIN)
    return environment


def check_join(output: str) -> None:
    answer = json.loads(output.splitlines()[-1])
    assert answer["enabled"]
    assert answer["operator"]
    assert answer["columns"] == ["k", "a", "b", "c"]

    def by_text(row: Sequence[object]) -> list[str]:
        return [str(value) for value in row]

    assert sorted(answer["rows"], key=by_text) == sorted(ROWS, key=by_text)


def test_holds_one_jar_of_each_line_and_of_its_own_version(environment: Environment) -> None:
    jar = Path(environment.python("import pyspark_skewext as s; print(s.jar_path())"))
    assert environment.folder in jar.parents
    line = ".".join(pyspark.__version__.split(".")[:2])
    assert re.fullmatch(rf"skewext-spark{line}_2\.1[23]-{VERSION}\.jar", jar.name)
    jars = [path.name for path in jar.parent.iterdir()]
    assert all(name.endswith(f"-{VERSION}.jar") for name in jars)
    assert len({name.split("_")[0] for name in jars}) == len(jars)


def test_version_types_and_licence(environment: Environment) -> None:
    code = """
import importlib.metadata, json, pyspark_skewext
dist = importlib.metadata.distribution("pyspark-skewext")
print(json.dumps({
    "versions": [dist.version, pyspark_skewext.__version__],
    "files": [str(path) for path in dist.files],
    "requires": dist.requires,
}))
"""
    found = json.loads(environment.python(code))
    assert found["versions"] == [VERSION, VERSION]
    assert all("extra ==" in line for line in found["requires"])
    assert any(re.match(r"pyspark\b.*>=3\.5.*; extra", line) for line in found["requires"])
    assert "pyspark_skewext/py.typed" in found["files"]
    code = [path for path in found["files"] if path.endswith(".py")]
    assert {path.split("/")[0] for path in code} == {"pyspark_skewext"}
    assert not any("demo" in path for path in code)
    assert any(path.endswith("LICENSE") for path in found["files"])


def test_command_line_starts(environment: Environment) -> None:
    assert "report" in environment.run("python", "-m", "pyspark_skewext", "--help")


def test_join_in_a_configured_session(environment: Environment) -> None:
    check_join(environment.run("python", "join.py", "configure"))


def test_join_under_spark_submit(environment: Environment) -> None:
    jar = environment.python("import pyspark_skewext; print(pyspark_skewext.jar_path())")
    home = environment.python("import pyspark; print(pyspark.__path__[0])")
    check_join(
        environment.run(
            *(f"{home}/bin/spark-submit", "--master", "local[2]", "--jars", jar),
            *("--conf", "spark.sql.extensions=io.github.skewext.SkewExtensions"),
            *("join.py", "submitted"),
        )
    )
