"""What `make release` is asked for."""

from __future__ import annotations

import argparse


def parse(arguments: list[str], about: str = "") -> argparse.Namespace:
    """Read the command line; the version comes first, as nothing says where the lines end."""
    parser = argparse.ArgumentParser(description=about.split("\n", 1)[0])
    parser.add_argument("version", nargs="?", help="such as 0.2.0; none for a dry run")
    parser.add_argument("--lines", nargs="+", required=True, help="lines of Spark, such as 3.5 4.2")
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--skip-tests", action="store_true", help="if they have just run")
    return parser.parse_args(arguments)
