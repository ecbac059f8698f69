"""The options of ``report``."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

from pyspark_skewext.cli.files import FORMATS, InputFile
from pyspark_skewext.cli.request import (
    RequestError,
    SessionOptions,
    add_common_options,
    check_input,
    listed,
    settings,
)

_REPORT_EXAMPLES = """\
examples:
  Which users have the most visits, and does that matter?
    {program} visits.parquet --on user

  What would a join give, and would 1000 partitions be better?
    {program} visits.parquet --on user --other users.csv:id --partitions 1000

  A page to show to others, and figures for a program:
    {program} visits.parquet --on user,day --html visits.html --json

  What the joins of a query took that has run, and why; of the longest one, or of number 12:
    {program} --event-log logs/app-20240101-0001.zstd
    {program} --event-log logs/eventlog_v2_app-20240101-0001 --query 12
"""


@dataclass
class ReportRequest(SessionOptions):
    """What one call of ``report`` is to do."""

    inputs: list[InputFile]
    on: list[str]
    partitions: int | None
    sizes: bool
    json: bool
    html: str | None
    infer_types: bool

    @classmethod
    def from_options(cls, options: argparse.Namespace) -> ReportRequest:
        """Check the options as far as that goes without looking at data."""
        on = listed(options.on, "--on")
        paths = [options.input] + ([options.other] if options.other else [])
        inputs = [InputFile.parse(each, options.format) for each in paths]
        for each in inputs:
            check_input(each, on)
        return cls(
            inputs=inputs,
            on=on,
            partitions=options.partitions,
            sizes=options.sizes,
            json=options.json,
            html=options.html,
            infer_types=not options.no_infer,
            conf=settings(options.conf),
            master=options.master,
            verbose=options.verbose,
        )


@dataclass
class QueryReportRequest(SessionOptions):
    """The same, where the report is about a query in an event log."""

    event_log: str
    query: int | None
    json: bool
    html: str | None

    @property
    def inputs(self) -> list[InputFile]:
        """None: it reads no data."""
        return []

    @classmethod
    def from_options(cls, options: argparse.Namespace) -> QueryReportRequest:
        """Refuse what is about files with data."""
        given = {
            "INPUT": options.input,
            "--on": options.on,
            "--other": options.other,
            "--partitions": options.partitions,
            "--sizes": options.sizes,
            "--format": options.format,
        }
        for name, value in given.items():
            if value not in (None, False):
                raise RequestError(f"{name} is not for the report on a query: drop --event-log.")
        return cls(
            event_log=options.event_log,
            query=options.query,
            json=options.json,
            html=options.html,
            conf=settings(options.conf),
            master=options.master,
            verbose=options.verbose,
        )


def report_request(options: argparse.Namespace) -> ReportRequest | QueryReportRequest:
    """Tell which report is wanted, and check its options."""
    if options.event_log is not None:
        return QueryReportRequest.from_options(options)
    if options.query is not None:
        raise RequestError("--query is the number of a query in an event log: add --event-log.")
    if options.input is None or options.on is None:
        raise RequestError("A report needs INPUT and --on, or --event-log.")
    return ReportRequest.from_options(options)


def add_report_parser(commands: Any, program: str) -> None:
    """Add ``report`` to the subcommands."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "report",
        help="show where the skew of a key is, or what became of a query",
        description="Show which keys have many rows, how uneven a shuffle by the key would be, "
        "and what to do about it; or, with --event-log, how uneven the joins of a query were.",
        epilog=_REPORT_EXAMPLES.format(program=program),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "input",
        nargs="?",
        metavar="INPUT",
        help="file or directory; INPUT:KEY where its key has another name",
    )
    parser.add_argument(
        "--on",
        metavar="KEY[,KEY...]",
        help="name of the key column, or several with commas",
    )
    parser.add_argument(
        "--other",
        metavar="INPUT",
        help="what it is to be joined with: shows how many rows the join gives, and of which keys",
    )
    parser.add_argument(
        "--partitions",
        type=int,
        metavar="N",
        help="into how many partitions a shuffle goes (default: spark.sql.shuffle.partitions)",
    )
    parser.add_argument(
        "--sizes",
        action="store_true",
        help="measure how large rows are instead of guessing it by their types; reads all columns",
    )
    parser.add_argument(
        "--event-log",
        metavar="LOG",
        help="instead of INPUT: the event log of an application, a file or a rolled log's folder",
    )
    parser.add_argument(
        "--query",
        type=int,
        metavar="N",
        help="the number of a query in the event log (default: the longest that has a join)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--html", metavar="FILE", help="write a page with a picture, too")
    parser.add_argument(
        "--format", choices=FORMATS, help="format (default: by the end of the name)"
    )
    add_common_options(parser)
