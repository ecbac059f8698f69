"""``python -m demo``, in the folder ``python`` of the repository."""

import sys

from demo import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
