"""``python -m pyspark_skewext``."""

import sys

from pyspark_skewext.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
