"""N-way joins for PySpark: any number of tables joined on one key in one pass.

The work is done by a Spark extension (a jar that this package brings along); these functions
put it into a session and call it.

A wrong argument raises ``PySparkTypeError`` or ``PySparkValueError``. A session, or a Spark Connect
server, without the extension raises ``PySparkRuntimeError``.

Examples
--------
>>> import pyspark_skewext as skewext
>>> phones = spark.createDataFrame([(1, "red"), (2, "blue")], ["id", "colour"])
>>> bills = spark.createDataFrame([(2, 9.5), (3, 4.0)], ["id", "amount"])
>>> calls = spark.createDataFrame([(1, 7), (3, 2)], ["id", "calls"])
>>> skewext.multi_full_join(phones, bills, calls, on="id").orderBy("id").show()
+---+------+------+-----+
| id|colour|amount|calls|
+---+------+------+-----+
|  1|   red|  NULL|    7|
|  2|  blue|   9.5| NULL|
|  3|  NULL|   4.0|    2|
+---+------+------+-----+
<BLANKLINE>
"""

from pyspark_skewext._jar import jar_path
from pyspark_skewext._validate import JoinInput, Latest
from pyspark_skewext._version import __version__
from pyspark_skewext.asofjoin import AsOf, asof, asof_join, latest
from pyspark_skewext.buckets import Bucket, WrittenBuckets, write_bucketed
from pyspark_skewext.checkup import Checkup, doctor
from pyspark_skewext.explanation import Explanation, explain
from pyspark_skewext.multijoin import multi_full_join, multi_join
from pyspark_skewext.report import QueryReport, SkewReport, query_report, skew_report
from pyspark_skewext.roles import Role
from pyspark_skewext.session import configure, is_enabled, register
from pyspark_skewext.skewjoin import skew_join
from pyspark_skewext.techniques import (
    Adaptive,
    Auto,
    Broadcast,
    BroadcastMap,
    IterativeBroadcast,
    Salted,
    Technique,
)

__all__ = [
    "Adaptive",
    "AsOf",
    "Auto",
    "Broadcast",
    "BroadcastMap",
    "Bucket",
    "Checkup",
    "Explanation",
    "IterativeBroadcast",
    "JoinInput",
    "Latest",
    "QueryReport",
    "Role",
    "Salted",
    "SkewReport",
    "Technique",
    "WrittenBuckets",
    "__version__",
    "asof",
    "asof_join",
    "configure",
    "doctor",
    "explain",
    "is_enabled",
    "jar_path",
    "latest",
    "multi_full_join",
    "multi_join",
    "query_report",
    "register",
    "skew_join",
    "skew_report",
    "write_bucketed",
]
