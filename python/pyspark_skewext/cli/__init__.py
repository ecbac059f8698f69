"""The command line: ``python -m pyspark_skewext``."""

from pyspark_skewext.cli.main import main

__all__ = ["main"]
