"""What the text and the pages of all reports are made of."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from html import escape

_WIDTH = 96

#: Names, and what is to be said of each.
Facts = Sequence[tuple[str, str]]
#: A header, and rows that are as long.
Table = tuple[Sequence[str], Sequence[Sequence[str]]]


def as_text(title: str, facts: Facts, caption: str, table: Table, advice: Sequence[str]) -> str:
    """Put a report together as lines of text."""
    width = max(len(name) for name, _ in facts)
    lines = [title, "", *(f"  {name:<{width}}  {what}".rstrip() for name, what in facts)]
    header, rows = table
    if rows:
        lines += ["", caption, "", *(f"  {line}" for line in _aligned(header, rows))]
    return "\n".join([*lines, "", "Advice", "", *_advice_lines(advice)])


def as_html(title: str, facts: Facts, picture: str, table: Table, advice: Sequence[str]) -> str:
    """Put a report together as a piece of a page."""
    header, rows = table
    return (
        f"<div><h4>{escape(title)}</h4>{_facts_table(facts)}{picture}"
        f"{_table(header, rows) if rows else ''}{_listed(advice)}</div>"
    )


def _advice_lines(advice: Sequence[str]) -> list[str]:
    """Write sentences as a list, in lines that are not too long."""
    lines = []
    for sentence in advice:
        lines += textwrap.wrap(
            sentence,
            _WIDTH,
            initial_indent="  * ",
            subsequent_indent="    ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    return lines


def _aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Write a table: the first column to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(header, *rows)]
    lines = [
        "  ".join(
            cell.rjust(width) if position else cell.ljust(width)
            for position, (cell, width) in enumerate(zip(row, widths))
        ).rstrip()
        for row in [header, *rows]
    ]
    return [lines[0], "  ".join("-" * width for width in widths), *lines[1:]]


def _facts_table(facts: Facts) -> str:
    """Write names and sentences."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{escape(name.strip())}</th>"
        f"<td style='text-align:left'>{escape(what)}</td></tr>"
        for name, what in facts
    )
    return f"<table>{rows}</table>"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a table with a header."""
    lines = [_row("th", header), *(_row("td", row) for row in rows)]
    return f"<table>{''.join(lines)}</table>"


def _listed(advice: Sequence[str]) -> str:
    """Write sentences as a list."""
    return f"<ul>{''.join(f'<li>{escape(sentence)}</li>' for sentence in advice)}</ul>"


def _row(tag: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"
