"""Joins in small heaps: their outcome and their memory, with the extension and without.

    bench/memory.py                  all cases, each both ways, each in a JVM of its own
    bench/memory.py --only hot       cases whose names contain this

One JVM, the driver and executor of a local session, joins the rows. The resident memory is the
system's figure, the spilled bytes are Spark's. A case of two hot inputs shows what stock Spark does
not survive: its sort-merge full outer join keeps all rows of a key of both sides on the heap.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import summary
from harness.facts import Watch
from harness.measure import progress
from harness.sessions import configured
from harness.ways import WAYS, answer, in_a_process

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_KRYO = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrationRequired": "true",
}
_OFF_HEAP = {"spark.memory.offHeap.enabled": "true", "spark.memory.offHeap.size": "128m"}
_ENCRYPTED = {"spark.io.encryption.enabled": "true"}
_MANY = {
    "spark.sql.shuffle.partitions": "2000",
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
}


@dataclass(frozen=True)
class Case:
    """A join of so many inputs: a full outer join, unless it has another type."""

    name: str
    inputs: int
    heap: str = "512m"
    #: Rows of each input, each of a key of its own.
    rows: int = 200_000
    #: Rows of the hot key, in the first inputs.
    hot: tuple[int, ...] = ()
    #: Bytes of a value.
    width: int = 100
    udf: bool = False
    #: The type of a join of two inputs that is written as any join is.
    how: str = ""
    settings: dict[str, str] = field(default_factory=dict)


CASES = (
    *(Case(f"{n} inputs", n, rows=1_200_000 // n) for n in (2, 4, 8, 20)),
    *(Case(f"{n} inputs, 1 GB", n, "1g", rows=2_400_000 // n) for n in (4, 20)),
    Case("hot key in one of 3", 3, hot=(1_000_000,)),
    Case("hot key in two of 3", 3, hot=(20_000, 200)),
    Case("hot key in all of 3", 3, hot=(2_000, 40, 20)),
    Case("inner join", 2, rows=600_000, how="inner"),
    Case("inner join, hot key in the first", 2, hot=(1_000_000,), how="inner"),
    Case("inner join, hot key in both", 2, hot=(20_000, 200), how="inner"),
    Case("left join, hot key in both", 2, hot=(200, 20_000), how="left"),
    Case("semi join, hot key in the second", 2, hot=(10, 1_000_000), how="left_semi"),
    Case("anti join, hot key in the first", 2, hot=(1_000_000, 10), how="left_anti"),
    Case("inner join, off-heap", 2, rows=300_000, how="inner", settings=_OFF_HEAP),
    Case("inner join, I/O encryption", 2, rows=300_000, how="inner", settings=_ENCRYPTED),
    Case("inner join, 2,000 partitions", 2, rows=300_000, how="inner", settings=_MANY),
    Case("4 inputs, a Python UDF above", 4, rows=100_000, udf=True),
    Case("4 inputs, off-heap", 4, rows=300_000, settings=_OFF_HEAP),
    Case("4 inputs, I/O encryption", 4, rows=300_000, settings=_ENCRYPTED),
    Case("4 inputs, Kryo, registrationRequired", 4, rows=100_000, settings=_KRYO),
    Case("2 inputs, rows of 300 MB", 2, "4g", rows=2, width=300_000_000),
    Case("2 inputs, rows of 1.1 GB", 2, "12g", rows=2, width=1_100_000_000),
)


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="bench/memory.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--only", default="", help="cases whose names contain this")
    add("--case", help="this one, in this process; prints JSON")
    add("--way", choices=WAYS, default="on", help="how --case is run (on)")
    add("--timeout", type=float, default=180, help="seconds a run may take (180)")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """Run the cases; 1 if one failed with the extension and not without."""
    options = parse(arguments)
    if options.case:
        (case,) = (each for each in CASES if each.name == options.case)
        answer(run_one(case, options.way))
        return 0
    worse = []
    for case in CASES:
        if options.only not in case.name:
            continue
        on, off = (
            in_a_process(__file__, "--case", case.name, "--way", way, timeout=options.timeout)
            for way in WAYS
        )
        if on.get("sums") != off.get("sums", on.get("sums")):
            on["outcome"] = "WRONG"
        if on["outcome"] != "done" and off["outcome"] == "done":
            worse.append(case.name)
        found = {"heap": case.heap, "on": on, "off": off}
        progress(f"{case.name}: {json.dumps(found)}")
        known = summary.read("reliability-memory.json").get("cases", {})
        summary.keep("reliability-memory.json", cases={**known, case.name: found})
    return 1 if worse else 0


def run_one(case: Case, way: str) -> dict[str, Any]:
    """Join in this process."""
    from pyspark.sql import functions as F

    import pyspark_skewext as skewext

    with tempfile.TemporaryDirectory() as home:
        spark = _session(case, way, home)
        watch, begin = Watch(spark), time.monotonic()
        inputs = [table(spark, case, i) for i in range(case.inputs)]
        if case.how:
            joined = inputs[0].join(inputs[1], "k", case.how)
        else:
            joined = skewext.multi_full_join(*inputs, on="k")
        if case.udf:
            same = F.udf(lambda k: k, "long")
            joined = joined.withColumn("k", same("k"))
        sums = [F.sum(name) for name in joined.columns if name.startswith("v")]
        sums += [F.sum(F.length(name)) for name in joined.columns if name.startswith("s")]
        (row,) = joined.agg(F.count("*"), F.sum("k"), *sums).collect()
        seconds = time.monotonic() - begin
        found = {"seconds": round(seconds, 1), "sums": list(row), **_taken(spark, watch)}
        spark.stop()
    return found


def table(spark: SparkSession, case: Case, number: int) -> DataFrame:
    """Keys of which two inputs share half, and some rows of the hot one."""
    from pyspark.sql import functions as F

    hot = case.hot[number] if number < len(case.hot) else 0
    place = F.col("id")
    key = F.when(place < hot, F.lit(-7)).otherwise(place - hot + number * (case.rows // 2))
    text = F.rpad(F.sha2(place.cast("string"), 256), case.width, "x")
    rows = spark.range(0, case.rows + hot, 1, 4)
    return rows.select(key.alias("k"), place.alias(f"v{number}"), text.alias(f"s{number}"))


def _session(case: Case, way: str, home: str) -> SparkSession:
    settings = {
        "spark.driver.memory": case.heap,
        "spark.local.dir": home,
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.unsafe.exceptionOnMemoryLeak": "true",
        "spark.skewext.enabled": str(way == "on").lower(),
        **case.settings,
    }
    return configured("local[2]", settings, "OFF")


def _taken(spark: SparkSession, watch: Watch) -> dict[str, Any]:
    """What the JVM held at most, and what tasks spilled."""
    session: Any = spark
    spilled = watch.facts()["spilled_disk_bytes"]
    pid = session._jvm.java.lang.ProcessHandle.current().pid()
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    resident = int(status.split("VmHWM:")[1].split()[0]) / 1024
    return {"resident_mb": round(resident), "spilled_mb": round(spilled / 1e6, 1)}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
