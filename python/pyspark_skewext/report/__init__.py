"""Where the skew of a key is, before it is met."""

from pyspark_skewext.report.function import skew_report
from pyspark_skewext.report.result import Bounds, HotKey, KeySkew, OutputSkew, SkewReport

__all__ = ["Bounds", "HotKey", "KeySkew", "OutputSkew", "SkewReport", "skew_report"]
