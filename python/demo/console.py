"""Plain text for a terminal: headings, aligned tables, and a sign of life during long steps."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal

INDENT = "  "
NUMBERS = (int, float, Decimal)


def heading(text: str) -> None:
    """Start a section."""
    print(f"\n{text}\n{'-' * len(text)}", flush=True)


def line(text: str = "") -> None:
    """Print one indented line now, also when the output is a pipe."""
    print(f"{INDENT}{text}".rstrip(), flush=True)


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows under a header; numbers are set to the right and get thousands separators."""
    cells = [[_text(cell) for cell in row] for row in rows]
    widths = [max(len(text) for text in column) for column in zip(header, *cells)]
    right = [
        all(row[position] is None or isinstance(row[position], NUMBERS) for row in rows)
        for position in range(len(header))
    ]
    line(_aligned(header, widths, right))
    line("  ".join("-" * width for width in widths))
    for row in cells:
        line(_aligned(row, widths, right))


@contextmanager
def step(text: str, every: float = 2.0) -> Iterator[None]:
    """Say what is being done, add a dot every few seconds, and the time it took at the end."""
    start = time.perf_counter()
    done = threading.Event()
    print(f"{INDENT}{text} ...", end="", flush=True)

    def alive() -> None:
        while not done.wait(every):
            print(".", end="", flush=True)

    dots = threading.Thread(target=alive, daemon=True)
    dots.start()
    failed = True
    try:
        yield
        failed = False
    finally:
        done.set()
        dots.join()
        ending = "failed after" if failed else "done in"
        print(f" {ending} {time.perf_counter() - start:.1f} s", flush=True)


def _aligned(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    return "  ".join(
        cell.rjust(width) if to_right else cell.ljust(width)
        for cell, width, to_right in zip(cells, widths, right)
    )


def _text(cell: object) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, (float, Decimal)):
        return f"{cell:,.2f}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)
