"""One page for each result: as text, and as a piece of HTML for notebooks."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from pyspark_skewext.render.chart import Chart, svg

_WRAPPER = textwrap.TextWrapper(96, initial_indent="  * ", subsequent_indent="    ")
# Calls and names of settings stay whole.
_WRAPPER.break_long_words = _WRAPPER.break_on_hyphens = False
_GAINS, _COMMAND = "Joins that would gain most", "With these options of spark-submit:"


@dataclass(frozen=True)
class Page:
    """The contents of a result: facts, a table with a caption, sentences, and charts.

    The gains of joins come with a line to copy.
    """

    title: str
    facts: Sequence[tuple[str, str]] = ()
    caption: str = ""
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    advice: Sequence[str] = ()
    charts: Sequence[Chart] = ()
    gains: Sequence[str] = ()
    command: str = ""

    def text(self) -> str:
        """The page as lines of text."""
        width = max((len(name) for name, _ in self.facts), default=0)
        facts = [f"  {name:<{width}}  {value}".rstrip() for name, value in self.facts]
        table = self._table() if self.rows else []
        blocks = [[self.title], facts]
        if self.gains:
            blocks += [[_GAINS], _wrapped(self.gains), [f"  {_COMMAND}", f"  {self.command}"]]
        if table:
            blocks += [[self.caption], table]
        if self.advice:
            blocks += [["Advice"], _wrapped(self.advice)]
        return "\n\n".join("\n".join(block) for block in blocks if any(block))

    def html(self) -> str:
        """The page as a piece of HTML."""
        facts = "".join(
            f"<tr><th style='text-align:left;white-space:pre'>{escape(name)}</th>"
            f"<td style='text-align:left;overflow-wrap:anywhere'>{escape(value)}</td></tr>"
            for name, value in self.facts
        )
        table = [_row("th", self.header), *(_row("td", row) for row in self.rows)]
        parts = [
            f"<h4>{escape(self.title)}</h4>",
            f"<table>{facts}</table>" if facts else "",
            f"<h5>{_GAINS}</h5>{_items(self.gains)}<p>{_COMMAND}</p>"
            f"<pre style='white-space:pre-wrap'>{escape(self.command)}</pre>"
            if self.gains
            else "",
            svg(self.title, self.charts),
            # On a narrow page it scrolls.
            f"<div style='overflow-x:auto'><table>{''.join(table)}</table></div>"
            if self.rows
            else "",
            _items(self.advice),
        ]
        # On a phone, paths of logs and names of settings are longer than a line.
        return f"<div style='overflow-wrap:break-word'>{''.join(parts)}</div>"

    def _table(self) -> list[str]:
        """The table: the first column to the left, numbers to the right."""
        widths = [max(map(len, column)) for column in zip(self.header, *self.rows)]
        lines = [
            "  "
            + "  ".join(
                cell.rjust(width) if position else cell.ljust(width)
                for position, (cell, width) in enumerate(zip(row, widths))
            ).rstrip()
            for row in [self.header, *self.rows]
        ]
        return [lines[0], "  " + "  ".join("-" * width for width in widths), *lines[1:]]


def _wrapped(sentences: Sequence[str]) -> list[str]:
    return [line for sentence in sentences for line in _WRAPPER.wrap(sentence)]


def _items(sentences: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(each)}</li>' for each in sentences)}</ul>"


def _row(tag: str, cells: Sequence[str]) -> str:
    """A row of the table, aligned as in text; numbers stay on one line."""
    styles = ["text-align:left", *["text-align:right;white-space:nowrap"] * (len(cells) - 1)]
    parts = [f"<{tag} style='{style}'>{escape(cell)}</{tag}>" for style, cell in zip(styles, cells)]
    return f"<tr>{''.join(parts)}</tr>"
