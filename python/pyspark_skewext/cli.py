"""The command line, ``python -m pyspark_skewext``: the path of the jar, reports on event logs."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark_skewext._errors import first_line
from pyspark_skewext._jar import jar_path
from pyspark_skewext._version import __version__

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROGRAM = "python -m pyspark_skewext"
FAILURE, INTERRUPTED = 1, 130
# As wide as the screen, also on a phone, and dark where the reader's pages are.
_HEAD = (
    "<!DOCTYPE html><html lang='en'><meta charset='utf-8'>"
    "<meta name='viewport' content='width=device-width'>"
    "<meta name='color-scheme' content='light dark'>"
    "<style>body{font-family:sans-serif}td,th{padding:2px 8px}</style>"
)
_CONF = "a setting of Spark, such as one of the log's file system; may be repeated"


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command, and return the exit code.

    It is 0, 1 for a failure, 2 for a wrong command line, or 130 after Ctrl-C.

    Examples
    --------
    >>> main(["jar"])
    /...jar
    0
    """
    try:
        options = _parser().parse_args(argv)
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else FAILURE
    try:
        if options.command == "jar":
            print(jar_path(options.spark))
        elif options.command == "doctor":
            from pyspark_skewext.checkup import doctor

            with _session(options.conf) as spark:
                print(doctor(spark))
        else:
            _report(options)
    except KeyboardInterrupt:
        return _fail("Interrupted.", INTERRUPTED)
    except Exception as error:
        message = _message_of(error)
        if message is None:
            raise
        return _fail(message)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=PROGRAM, description="Tools for skewext on Apache Spark.")
    parser.add_argument("--version", action="version", version=f"pyspark_skewext {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)

    add = commands.add_parser("jar", help="print the path of the jar, for --jars").add_argument
    add("--spark", metavar="LINE", help="line or version of Spark, as 4.2 (default: of PySpark)")

    doctor = "list the parts of the extension that a session here has, and why others are off"
    add = commands.add_parser("doctor", help=doctor).add_argument
    add("--conf", type=_setting, action="append", default=[], metavar="KEY=VALUE", help=_CONF)

    report = "show how uneven the joins of a query in an event log were, and what they would gain"
    add = commands.add_parser("report", help=report).add_argument
    add("event_log", metavar="EVENTLOG", help="a file, or the folder of a rolled event log")
    add("--query", type=int, metavar="N", help="number (default: the longest query with a join)")
    add("--json", action="store_true", help="print JSON instead of a table")
    add("--html", type=Path, metavar="FILE", help="also write a page with a picture")
    add("--conf", type=_setting, action="append", default=[], metavar="KEY=VALUE", help=_CONF)
    return parser


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise argparse.ArgumentTypeError(f"expected KEY=VALUE, not {text!r}")
    return key.strip(), value


def _report(options: argparse.Namespace) -> None:
    path: str = options.event_log
    # Spark takes seconds to start. Only a local path can be checked before.
    scheme, _, local = path.rpartition(":")
    if scheme in ("", "file") and not Path(local).exists():
        raise FileNotFoundError(f"There is no event log {path}.")
    if options.html is not None:
        folder = options.html.absolute().parent
        if not folder.is_dir():
            raise FileNotFoundError(f"There is no folder {folder}.")
        if options.html.is_dir():
            raise IsADirectoryError(f"{options.html} is a folder: --html needs a file.")

    from pyspark_skewext.report import query_report

    print(f"Reading {path} ...", file=sys.stderr, flush=True)
    with _session(options.conf):
        report = query_report(options.query, event_log=path)
    print(json.dumps(report.to_dict(), indent=2) if options.json else report)
    if options.html is not None:
        title = f"<title>{escape(report._page().title)}</title>"
        options.html.write_text(f"{_HEAD}{title}{report._repr_html_()}", encoding="utf-8")


@contextmanager
def _session(conf: Sequence[tuple[str, str]]) -> Iterator[SparkSession]:
    """The session of this process, or a new one that is stopped afterwards."""
    from pyspark.sql import SparkSession

    from pyspark_skewext.session import configure

    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    settings = {"spark.master": "local[1]", "spark.ui.enabled": "false", **dict(conf)}
    builder = SparkSession.builder.appName(PROGRAM)
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = configure(builder).getOrCreate()
    try:
        spark.sparkContext.setLogLevel("ERROR")
        yield spark
    finally:
        spark.stop()


def _message_of(error: Exception) -> str | None:
    """One line for an error of the data or the installation; None for a fault of this program."""
    if isinstance(error, ImportError) and str(error.name).split(".")[0] == "pyspark":
        return (
            "PySpark is not installed, or only its client: pip install 'pyspark-skewext[pyspark]'"
        )
    expected: tuple[type[Exception], ...] = (OSError, RuntimeError)
    if "pyspark" in sys.modules:
        from pyspark.errors import PySparkException

        expected = (OSError, PySparkException)
    if not isinstance(error, expected):
        return None
    return first_line(error)


def _fail(message: str, code: int = FAILURE) -> int:
    print(f"error: {message}", file=sys.stderr)
    return code
