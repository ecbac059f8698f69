"""Write an archive of Spark's classes, which halves the start time of the JVMs of tests.

    build-tools/class_archive.py target/spark-3.5/classes.jsa

A session loads and verifies about 15,000 classes before its first query ends, which takes up to
four seconds of processor time. The JVM maps classes from an archive instead (class data sharing).
With another class path or another Java it ignores the archive, so nothing depends on it.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

# The operations of most tests. The session's files are in the folder, which is removed.
SESSION = """
import sys
from pyspark.sql import SparkSession
import pyspark_skewext as skewext

home = sys.argv[1]
builder = SparkSession.builder.master("local[1]")
for key, value in {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.warehouse.dir": home,
}.items():
    builder = builder.config(key, value)
spark = skewext.configure(builder).getOrCreate()
spark.sparkContext.setLogLevel("OFF")
spark.range(9).selectExpr("id % 4 AS k", "id AS v").write.bucketBy(2, "k").saveAsTable("a")
spark.createDataFrame([(1, "x"), (2, None)], "k long, s string").createOrReplaceTempView("b")
a, b = spark.table("a"), spark.table("b")
skewext.multi_full_join(a, b, a.groupBy("k").count(), on="k").collect()
spark.sql("SELECT k, max(s) OVER (ORDER BY k) m FROM a FULL JOIN b USING (k) ORDER BY 1").collect()
spark.sql("SELECT /*+ BROADCAST(b) */ * FROM a LEFT JOIN b USING (k) WHERE v > 1").collect()
jvm = spark.sparkContext._gateway.proc
spark.stop()
jvm.stdin.close()
# It writes the archive when it ends.
jvm.wait()
"""


def main(archive: Path) -> int:
    """Run a session that leaves its classes in the archive; a JVM that can't is no failure."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    part = archive.with_suffix(".part")
    environment = {
        **os.environ,
        "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
        f" -XX:ArchiveClassesAtExit={part} -Xlog:disable",
    }
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(
            [sys.executable, "-c", SESSION, home], cwd=home, env=environment, capture_output=True
        )
    if done.returncode or not part.exists():
        print("Tests go without an archive of Spark's classes.", file=sys.stderr)
        part.touch()
    part.rename(archive)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
