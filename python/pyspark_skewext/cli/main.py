"""Subcommands, exit codes, and errors as one line."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from typing import Any

from pyspark_skewext._jar import jar_path
from pyspark_skewext._version import __version__
from pyspark_skewext.cli import join, report
from pyspark_skewext.cli.files import InputFile
from pyspark_skewext.cli.report_request import add_report_parser, report_request
from pyspark_skewext.cli.request import Request, RequestError, add_join_parser

PROGRAM = "python -m pyspark_skewext"

FAILURE = 1
USAGE = 2
INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run a subcommand.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments after the program's name, by default those of the process.

    Returns
    -------
    int
        0 if it worked, 1 if it failed, 2 if the command line was wrong.
    """
    parser = _parser()
    try:
        options = parser.parse_args(argv)
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else FAILURE
    if options.command is None:
        parser.print_help(sys.stderr)
        return USAGE
    return _run(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Join any number of tables on one key with Apache Spark, in one pass.",
        epilog=f"Help on a command: {PROGRAM} join --help",
    )
    parser.add_argument("--version", action="version", version=f"pyspark_skewext {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command", title="commands")
    add_join_parser(commands, f"{PROGRAM} join")
    add_report_parser(commands, f"{PROGRAM} report")
    jar = commands.add_parser("jar", help="print the path of the jar, for spark-submit --jars")
    jar.add_argument(
        "--spark",
        metavar="LINE",
        help="the line of Spark, as 4.2, or a version of it; by default that of PySpark",
    )
    jar.set_defaults(verbose=False)
    return parser


def _run(options: argparse.Namespace) -> int:
    inputs: list[InputFile] = []
    try:
        if options.command == "jar":
            print(jar_path(options.spark))
        elif options.command == "report":
            wanted = report_request(options)
            inputs = wanted.inputs
            report.run(wanted)
        else:
            request = Request.from_options(options)
            inputs = request.inputs
            join.run(request)
    except RequestError as error:
        return _fail(str(error), USAGE)
    except KeyboardInterrupt:
        return _fail("Interrupted.", INTERRUPTED)
    except Exception as error:
        message = _expected(error)
        if message is None or options.verbose:
            raise
        return _fail(_with_paths(message, inputs))
    return 0


def _fail(message: str, code: int = FAILURE) -> int:
    print(f"error: {message}", file=sys.stderr)
    return code


def _expected(error: Exception) -> str | None:
    """One line for errors that data, settings or the installation can cause; None for others."""
    if isinstance(error, ImportError) and str(error.name).split(".")[0] == "pyspark":
        return "PySpark is not installed: pip install 'pyspark-skewext[pyspark]'"
    if type(error).__name__ == "Py4JJavaError":
        return _first_line(_root_cause(error))
    try:
        from pyspark.errors import PySparkException
    except ImportError:
        return _first_line(str(error)) if isinstance(error, RuntimeError) else None

    if isinstance(error, (PySparkException, OSError)):
        return _first_line(str(error))
    return None


def _root_cause(error: Any) -> str:
    cause = error.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    return str(cause.toString())


def _with_paths(message: str, inputs: Sequence[InputFile]) -> str:
    """Name inputs by their paths, as the user did."""
    return re.sub(
        r"\b[Ii]nput (\d+) \(counting from 0\)",
        lambda found: inputs[int(found.group(1))].path,
        message,
    )


def _first_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[0].rstrip(";") if lines else "unknown error"
