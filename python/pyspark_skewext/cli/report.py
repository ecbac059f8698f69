"""``report``: read, look at the keys, print."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark_skewext.cli.progress import Progress
from pyspark_skewext.cli.request import ReportRequest
from pyspark_skewext.cli.session import session
from pyspark_skewext.report import skew_report


def run(request: ReportRequest) -> None:
    """Carry out a request; progress goes to standard error, the report to standard output."""
    print("Starting Spark ...", file=sys.stderr, flush=True)
    with session("report", request) as spark, Progress(spark, sys.stderr) as progress:
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
