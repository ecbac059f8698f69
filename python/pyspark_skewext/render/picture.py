"""What the pictures of all reports share."""

from __future__ import annotations

from typing import Any

# More bars than this cannot be told apart.
MOST_BARS = 200


def figure_for(given: Any, *, height: float) -> Any:
    """Give what was given, or a new figure; say what is missing if matplotlib is."""
    try:
        import matplotlib  # noqa: F401

        if given is not None:
            return given
        from matplotlib import pyplot

        return pyplot.figure(figsize=(11, height), layout="constrained")
    except ImportError as error:
        raise ImportError(
            "plot() needs matplotlib: pip install 'pyspark-skewext[plot]'. In notebooks the report "
            "has a picture without it."
        ) from error
