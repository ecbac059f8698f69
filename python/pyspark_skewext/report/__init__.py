"""Reports on the skew of a key, and on a query that has run."""

from pyspark_skewext.report.query import QueryReport, query_report
from pyspark_skewext.report.skew import SkewReport, skew_report
from pyspark_skewext.results.skew import Bounds, HotKey, KeySkew, OutputSkew

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
