"""How the tasks of a query were that has run."""

from pyspark_skewext.report.query.function import query_report
from pyspark_skewext.report.query.result import (
    FiredRule,
    JoinStage,
    QueryReport,
    QuerySummary,
    RanJoin,
    TaskFigures,
)

__all__ = [
    "FiredRule",
    "JoinStage",
    "QueryReport",
    "QuerySummary",
    "RanJoin",
    "TaskFigures",
    "query_report",
]
