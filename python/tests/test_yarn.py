"""A cluster of YARN: executors, and the driver too, run in its containers."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest
from harness.sessions import maven_jar
from servers import free_port, listening

import pyspark_skewext as skewext

SPARK = Path(pyspark.__file__).parent
JARS = SPARK / "jars"
CACHE = Path(__file__).resolve().parents[2] / ".cache" / "bench"
CLUSTER = Path(__file__).with_name("MiniYarn.java")

#: Joins with the extension and without it, and the hosts of the tasks that join.
SCRIPT = """
import json, sys
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.builder.appName("joins on YARN").getOrCreate()
tables = [
    spark.range(1000 * n, 6000 + 1000 * n, 1, 4)
    .select((F.col("id") % 4000).alias("k"), F.sha2(F.col("id").cast("string"), 256).alias(f"s{n}"))
    for n in range(3)
]
found = {}
for way in ("true", "false"):
    spark.conf.set("spark.skewext.enabled", way)
    chain = tables[0].join(tables[1], "k", "full").join(tables[2], "k", "full")
    pair = tables[0].join(tables[1], "k")
    for name, joined in (("chain", chain), ("pair", pair)):
        sums = joined.agg(F.count("*"), F.sum(F.xxhash64(*joined.columns).cast("decimal(38)")))
        found[f"{name} {way}"] = [str(value) for value in sums.collect()[0]]
        found[f"plan {name} {way}"] = sums._jdf.queryExecution().executedPlan().toString()
found["executors"] = len(spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos()) - 1
with open(sys.argv[1], "w") as out:
    json.dump(found, out)
spark.stop()
"""


@contextmanager
def yarn(folder: Path) -> Iterator[Path]:
    """Start a cluster with one node, and give the folder of its settings."""
    (client,) = JARS.glob("hadoop-client-api-*.jar")
    version = client.stem.removeprefix("hadoop-client-api-")
    # The cluster of Hadoop's tests asserts by JUnit, and signs by Bouncy Castle.
    coordinates = (
        f"org.apache.hadoop:hadoop-client-minicluster:{version}",
        "junit:junit:4.13.2",
        "org.bouncycastle:bcprov-jdk15on:1.68",
        "org.bouncycastle:bcpkix-jdk15on:1.68",
    )
    jars = ":".join(str(maven_jar(CACHE, each)) for each in coordinates)
    port, conf = free_port(), folder / "conf"
    conf.mkdir()
    command = [
        "java",
        "-Xmx512m",
        "--add-opens=java.base/java.lang=ALL-UNNAMED",
        "-cp",
        f"{jars}:{JARS}/*",
        str(CLUSTER),
    ]
    with listening([*command, str(conf / "yarn-site.xml"), str(port)], port, folder):
        yield conf


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["client", "cluster"])
def test_joins_on_yarn(mode: str, tmp_path: Path) -> None:
    script, result = tmp_path / "job.py", tmp_path / "result.json"
    script.write_text(SCRIPT)
    settings = {
        "spark.sql.extensions": "io.github.skewext.SkewExtensions",
        "spark.yarn.jars": f"local:{JARS}/*",
        "spark.executor.instances": "2",
        "spark.executor.memory": "512m",
        "spark.driver.memory": "512m",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
    }
    command = [str(SPARK / "bin" / "spark-submit"), "--master", "yarn", "--deploy-mode", mode]
    command += ["--jars", skewext.jar_path()]
    command += [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    with yarn(tmp_path) as conf:
        done = subprocess.run(
            [*command, str(script), str(result)],
            env={
                **os.environ,
                "HADOOP_CONF_DIR": str(conf),
                "YARN_CONF_DIR": str(conf),
                # The package from PyPI has no archive of itself.
                "PYSPARK_ARCHIVES_PATH": f"local:{SPARK.parent}",
            },
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=400,
        )
    assert done.returncode == 0, done.stderr[-5000:]
    found = json.loads(result.read_text())
    for name, operator in (("chain", "MultiFullJoin"), ("pair", "BuildProbeJoin")):
        assert found[f"{name} true"] == found[f"{name} false"]
        assert operator in found[f"plan {name} true"]
        assert operator not in found[f"plan {name} false"]
    assert found["executors"] == 2
