"""Explanations as entries of a title and lines, the same in text and in HTML."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

# Columns stay aligned, and long lines break. Jupyter's own style has another font and breaks words.
_PRE = (
    "<pre style='margin:0 0 1em;font-family:monospace;white-space:pre-wrap;word-break:normal;"
    "overflow-wrap:anywhere'>"
)

#: A title and lines; an indented line belongs to the line above.
Entry = tuple[str, Sequence[str]]


@dataclass(frozen=True)
class Listing:
    """Entries, in columns as text and as a piece of HTML."""

    entries: Sequence[Entry]

    def text(self) -> str:
        """The entries as text."""
        return "\n\n".join("\n  ".join([title, *lines]) for title, lines in self.entries)

    def html(self) -> str:
        """The entries as a piece of HTML."""
        parts = []
        for title, lines in self.entries:
            text = html.escape("\n".join(lines))
            parts.append(f"<p><b>{html.escape(title)}</b></p>")
            parts += [f"{_PRE}{text}</pre>"] if text else []
        return f"<div>{''.join(parts)}</div>"
