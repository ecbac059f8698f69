"""Run a smoke test with every Python and every patch release of PySpark of the default line.

    build-tools/matrix.py                 every Python that is here, with the PySpark we test with
    build-tools/matrix.py --full          and every other patch release, with one Python
    build-tools/matrix.py --pyspark 3.5.0 --python 3.9

It finds Pythons on PATH and in the folder of pyenv, and reports those that are missing. All
Pythons share the PySpark releases in .cache/matrix. `doctor` checks that a release has all classes
and methods that the jar calls.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from spark_lines import LINES, of

ROOT = Path(__file__).resolve().parents[1]
CACHE = ROOT / ".cache" / "matrix"
PYTHONS = ("3.9", "3.10", "3.11", "3.12", "3.13")
TESTED = of(LINES[0], "spark")
#: PySpark 3.5 imports distutils, which left Python with 3.12; setuptools has a copy.
BESIDE = "setuptools==80.9.0"

SMOKE = """
import sys
import setuptools  # noqa: F401
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
import pyspark
import pyspark_skewext as skewext

builder = SparkSession.builder.master("local[2]")
for key, value in {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "3",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": "4k",
    "spark.sql.adaptive.skewJoin.skewedPartitionFactor": "1.5",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "4k",
    "spark.sql.warehouse.dir": sys.argv[1],
}.items():
    builder = builder.config(key, value)
spark = skewext.configure(builder).getOrCreate()
assert skewext.is_enabled(spark)
checkup = skewext.doctor(spark)
assert "fit this Spark" not in str(checkup), checkup
# It lacks an extension point, so no partition is split there.
splits = pyspark.__version__ != "3.5.0"

def table(n, hot):
    rows = spark.range(0, 300 + hot, 1, 4)
    return rows.selectExpr(f"if(id >= 300, 7, id + {n}) AS k", f"concat('v', id) AS s{n}")

def rows(df):
    return sorted(map(str, map(tuple, df.collect())))

a, b, c = table(0, 2000), table(1, 0), table(2, 0)
expected = rows(a.join(b, "k", "full").join(c, "k", "full"))

def off(query):
    spark.conf.set("spark.skewext.enabled", "false")
    try:
        return rows(query())
    finally:
        spark.conf.set("spark.skewext.enabled", "true")

def three():
    return skewext.multi_full_join(a, b, c, on="k")

def two():
    return a.join(b, "k", "full")

joined, split = three(), two()
assert rows(joined) == off(three) and rows(split) == off(two)
for each in (joined, split):
    plan = each._jdf.queryExecution().executedPlan().toString()
    assert ("Join (skew: " in plan) == splits, plan
assert any("splits no partition" in note for note in skewext.explain(joined).notes) != splits
expected = off(two)
for technique in ("auto", "adaptive", "broadcast_map", "iterative_broadcast"):
    assert rows(skewext.skew_join(a, b, "k", "full", technique=technique)) == expected, technique
salted = skewext.skew_join(a, b, "k", "full", technique="salted", hot_keys=[7], salts=3)
assert rows(salted) == expected
assert skewext.write_bucketed(a, "smoke", by="k", buckets=3).rows == 2300
in_buckets = skewext.multi_full_join(spark.table("smoke"), b, on="k")
assert rows(in_buckets) == expected
assert "full outer" in str(skewext.explain(joined))
assert str(skewext.skew_report(a, on="k"))
print("SMOKE", pyspark.__version__, sys.version.split()[0], flush=True)
spark.stop()
"""


def main(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--pyspark", action="append", help="only these releases")
    parser.add_argument("--python", action="append", help="only these, as 3.9")
    options = parser.parse_args(arguments)
    wanted = options.python or list(PYTHONS)
    found = {version: path for version in wanted if (path := find(version))}
    for version in wanted:
        if version not in found:
            print(f"Python {version}: not here", flush=True)
    failed = 0
    for version, release in pairs(options, list(found)):
        said = smoke(found[version], release)
        failed += said != "passed"
        print(f"Python {version}, PySpark {release}: {said}", flush=True)
    return 1 if failed or not found else 0


def pairs(options, pythons):
    """Every Python with one release, and every release with one Python."""
    line, patch = TESTED.rsplit(".", 1)
    releases = [f"{line}.{n}" for n in range(int(patch))] if options.full else []
    if options.pyspark:
        return [(version, release) for release in options.pyspark for version in pythons]
    one = "3.11" if "3.11" in pythons else pythons[-1]
    return [(v, TESTED) for v in pythons] + [(one, release) for release in releases]


def find(version):
    """The path of that Python; None if it is missing."""
    versions = Path.home() / ".pyenv" / "versions"
    here = [shutil.which(f"python{version}"), *sorted(versions.glob(f"{version}.*/bin/python"))]
    return next((str(path) for path in here if path and is_python(path, version)), None)


def is_python(path, version):
    """Whether the command works: pyenv also puts commands on PATH that only fail."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([path, "-c", code], capture_output=True, text=True)
    return done.stdout.strip() == version


def smoke(python, release):
    folder = installed(release)
    home = CACHE / "run"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    leave = ("PYTHON", "PYSPARK", "SPARK", "SKEWEXT", "VIRTUAL_ENV")
    env = {name: value for name, value in os.environ.items() if not name.startswith(leave)}
    env["PYTHONPATH"] = os.pathsep.join([str(ROOT / "python"), str(folder)])
    env["PYSPARK_PYTHON"] = python
    command = [python, "-c", SMOKE, str(home / "warehouse")]
    done = subprocess.run(command, cwd=home, env=env, capture_output=True, text=True)
    if done.returncode == 0 and f"SMOKE {release}" in done.stdout:
        return "passed"
    return f"failed\n{done.stdout[-500:]}\n{done.stderr[-3000:]}"


def installed(release):
    """The folder with that PySpark. An installation that fails leaves no folder."""
    folder = CACHE / f"pyspark-{release}"
    if not folder.exists():
        making = CACHE / "making"
        shutil.rmtree(making, ignore_errors=True)
        pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        pip += ["--no-compile", "--use-pep517", "--target", str(making)]
        subprocess.run([*pip, f"pyspark=={release}", BESIDE], check=True)
        making.rename(folder)
    return folder


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
