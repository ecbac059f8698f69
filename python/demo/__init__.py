"""The demo: six TPC-DS tables become one customer table, with stock Spark and with us."""

from __future__ import annotations

import sys

from demo.options import DemoError, check_requirements, parse

__all__ = ["main"]


def main(argv: list[str]) -> int:
    """Run the demo.

    Parameters
    ----------
    argv
        Command line options; ``["--help"]`` explains them.

    Returns
    -------
    int
        0 when all answers agree, 1 when one differs, 2 when the demo cannot run here, 130 when
        it was interrupted.
    """
    options = parse(argv)
    try:
        check_requirements()
        # Only now, for these modules import what has just been looked for.
        from demo.story import tell

        return tell(options)
    except DemoError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("demo: interrupted", file=sys.stderr)
        return 130
