"""The options of the commands, and what they ask for."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from pyspark_skewext.cli.files import FORMATS, InputFile, overlaps, suffix_format

_EXAMPLES = """\
examples:
  Everything known about any device, in three files that call it "id":
    {program} phones.parquet bills.parquet calls.csv --on id --output out/

  One file calls it "device_id" instead: add the name after a colon:
    {program} phones.parquet bills.parquet:device_id --on id --output out/

  A key of two columns, only the keys of the first file, a CSV as result:
    {program} a.parquet b.json --on shop,day --how left --output out.csv

  Both files have a column "amount": tell them apart as amount_old, amount_new:
    {program} old.orc new.orc --on id --suffixes _old,_new --output out/

Inputs and output may be anything that Spark reads and writes: files, directories, patterns such as
'data/*.csv' (in quotes), or addresses such as s3a://bucket/table. The output is a directory, as
always with Spark. Rows without a key (NULL) match nothing and come out alone.
"""


class RequestError(Exception):
    """The command line is at fault, not the data."""


@dataclass
class SessionOptions:
    """Where Spark runs, and with which settings."""

    conf: dict[str, str]
    master: str | None
    verbose: bool


@dataclass
class Request(SessionOptions):
    """What one call of ``join`` is to do."""

    inputs: list[InputFile]
    on: list[str]
    output: str
    how: str = "full"
    mode: str = "error"
    output_format: str = "parquet"
    indicator: str | None = None
    suffixes: list[str] | None = None
    infer_types: bool = True

    @classmethod
    def from_options(cls, options: argparse.Namespace) -> Request:
        """Check the options as far as that goes without looking at data."""
        on = listed(options.on, "--on")
        inputs = [InputFile.parse(each, options.format) for each in options.inputs]
        if len(inputs) < 2:
            raise RequestError("A join needs at least two inputs.")
        for each in inputs:
            check_input(each, on)
            if options.mode == "overwrite" and overlaps(options.output, each.path):
                raise RequestError(
                    f"Overwriting {options.output} would delete the input {each.path} before it "
                    f"is read: choose another --output."
                )
        return cls(
            inputs=inputs,
            on=on,
            output=options.output,
            how=options.how,
            mode=options.mode,
            output_format=options.output_format or suffix_format(options.output) or "parquet",
            indicator=options.indicator,
            suffixes=_suffixes(options.suffixes, len(inputs)),
            conf=settings(options.conf),
            master=options.master,
            infer_types=not options.no_infer,
            verbose=options.verbose,
        )


def add_join_parser(commands: Any, program: str) -> None:
    """Add ``join`` to the subcommands (argparse does not name their type)."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "join",
        help="join files and write the result",
        description="Join two or more files on a key and write the result.",
        epilog=_EXAMPLES.format(program=program),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "inputs",
        nargs="+",
        metavar="INPUT",
        help="file or directory to join, at least two; INPUT:KEY where its key has another name",
    )
    parser.add_argument(
        "--on",
        required=True,
        metavar="KEY[,KEY...]",
        help="name of the key column, or several with commas: rows with equal keys are joined",
    )
    parser.add_argument(
        "--output", "-o", required=True, metavar="DIR", help="where the result is written"
    )
    parser.add_argument(
        "--how",
        choices=["full", "left", "inner"],
        default="full",
        help="which keys come out: of any input (full, the default), of the first (left), "
        "or only those that all have (inner)",
    )
    parser.add_argument(
        "--mode",
        choices=["error", "overwrite", "append", "ignore"],
        default="error",
        help="what to do when the output exists (default: error)",
    )
    parser.add_argument(
        "--format",
        choices=FORMATS,
        help="format of all inputs (default: by the end of each name)",
    )
    parser.add_argument(
        "--output-format",
        choices=FORMATS,
        help="format of the result (default: by the end of its name, else parquet)",
    )
    parser.add_argument(
        "--suffixes",
        metavar="S,S...",
        help="one for each input, added to the columns whose names several inputs have; may be "
        "empty, as in ',_new'",
    )
    parser.add_argument(
        "--indicator",
        metavar="NAME",
        help="add a column that says which inputs had the key, counting from 0 (as text in CSV)",
    )
    add_common_options(parser)


def add_common_options(parser: argparse.ArgumentParser) -> None:
    """Add what every command takes that reads files."""
    parser.add_argument(
        "--no-infer",
        action="store_true",
        help="read CSV columns as text instead of guessing types (keeps 007 from becoming 7)",
    )
    parser.add_argument("--master", help="where Spark runs, as for spark-submit")
    parser.add_argument(
        "--conf",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting of Spark; may be given several times",
    )
    parser.add_argument(
        "--verbose", action="store_true", help="show Spark's warnings, and errors in full"
    )


def check_input(given: InputFile, on: Sequence[str]) -> None:
    """Refuse key names that do not fit, and files of which nobody knows the format."""
    if given.keys is not None and len(given.keys) != len(on):
        raise RequestError(
            f"{given.path} is given {len(given.keys)} key names "
            f"({', '.join(given.keys)}) but --on has {len(on)} ({', '.join(on)})."
        )
    if given.format is None:
        raise RequestError(
            f"Cannot tell the format of {given.path} by its name: add --format {'|'.join(FORMATS)}."
        )


def listed(value: str, option: str) -> list[str]:
    """Read names with commas between them."""
    names = [name.strip() for name in value.split(",")]
    if not all(names):
        raise RequestError(f"{option} has an empty name: {value!r}.")
    return names


def _suffixes(value: str | None, inputs: int) -> list[str] | None:
    if value is None:
        return None
    suffixes = [suffix.strip() for suffix in value.split(",")]
    if len(suffixes) != inputs:
        raise RequestError(
            f"--suffixes has {len(suffixes)} entries but there are {inputs} inputs: one each."
        )
    return suffixes


def settings(pairs: Sequence[str]) -> dict[str, str]:
    """Read settings of Spark."""
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise RequestError(f"--conf takes KEY=VALUE, not {pair!r}.")
        found[key.strip()] = value
    return found


def suggested_suffixes(inputs: Sequence[InputFile]) -> str:
    """Make suffixes of the names of the files, or of positions where names will not do."""
    stems = [PurePosixPath(each.path).name.split(".")[0] for each in inputs]
    plain = all(stem.isidentifier() for stem in stems) and len(set(stems)) == len(stems)
    return ",".join(f"_{stem if plain else n}" for n, stem in enumerate(stems))
