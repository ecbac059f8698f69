"""``report``: read, look at the keys or at the tasks of a query, print."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark_skewext.cli.progress import Progress
from pyspark_skewext.cli.report_request import QueryReportRequest, ReportRequest
from pyspark_skewext.cli.session import session
from pyspark_skewext.report import QueryReport, SkewReport, query_report, skew_report


def run(request: ReportRequest | QueryReportRequest) -> None:
    """Carry out a request; progress goes to standard error, the report to standard output."""
    print("Starting Spark ...", file=sys.stderr, flush=True)
    with session("report", request) as spark, Progress(spark, sys.stderr) as progress:
        report: SkewReport | QueryReport
        if isinstance(request, QueryReportRequest):
            progress.step(f"Reading {request.event_log}")
            report = query_report(
                request.query,
                event_log=request.event_log,
                progress=lambda read, known: progress.detail(f"{read / known:.0%}"),
            )
        else:
            tables = []
            for each in request.inputs:
                progress.step(f"Reading {each.path}")
                tables.append((each.read(spark, request.infer_types), each.keys or request.on))
            progress.step(f"Looking at the keys of {request.inputs[0].path}")
            report = skew_report(
                tables[0],
                request.on,
                tables[1] if len(tables) > 1 else None,
                partitions=request.partitions,
                sizes=request.sizes,
            )
    print(json.dumps(report.to_dict(), indent=2) if request.json else report)
    if request.html is not None:
        page = f"<!DOCTYPE html><meta charset='utf-8'><title>Skew</title>{report._repr_html_()}"
        Path(request.html).write_text(page, encoding="utf-8")
