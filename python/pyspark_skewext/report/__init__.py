"""Where the skew of a key is, before it is met, and what it did to a query that has run."""

from pyspark_skewext.report.function import skew_report
from pyspark_skewext.report.query import QueryReport, query_report
from pyspark_skewext.report.result import Bounds, HotKey, KeySkew, OutputSkew, SkewReport

__all__ = [
    "Bounds",
    "HotKey",
    "KeySkew",
    "OutputSkew",
    "QueryReport",
    "SkewReport",
    "query_report",
    "skew_report",
]
