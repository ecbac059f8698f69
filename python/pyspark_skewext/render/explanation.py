"""Explanations as entries of a title and lines, the same in text and in HTML."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark_skewext.results.explanation import (
    Execution,
    ExplainedInput,
    ExplainedJoin,
    ExplainedScan,
    ExplainedSkew,
)

# Columns stay aligned, and long lines break. Jupyter's own style has another font and breaks words.
_PRE = (
    "<pre style='margin:0 0 1em;font-family:monospace;white-space:pre-wrap;word-break:normal;"
    "overflow-wrap:anywhere'>"
)
_PLACES = {"query": "", "cached data": " (in a cached table)"}

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


def listing_of(
    notes: Sequence[str], joins: Sequence[ExplainedJoin], scans: Sequence[ExplainedScan]
) -> Listing:
    """Write an entry for each note, each join and each scan."""
    # A note may say that the query was not looked at.
    nothing = [] if notes or joins else ["No joins."]
    entries: list[Entry] = [(text, []) for text in [*notes, *nothing]]
    for join in joins:
        title = f"Join {join.number}{_place(join.place)}: {join.title}"
        entries.append((title, [*_origin(join), *_inputs(join.inputs), *_work(join)]))
    for scan in scans:
        partitions = "" if scan.partitions is None else f", in {scan.partitions} partitions"
        read = f"reads {scan.read} of {scan.buckets} buckets{partitions}: {scan.why}"
        title = f"Scan {scan.number}{_place(scan.place)}: {scan.source}, {scan.buckets} buckets"
        entries.append((f"{title} by [{', '.join(scan.by)}]", [read, *_advice(scan.advice)]))
    return Listing(entries)


def _place(place: str) -> str:
    return _PLACES.get(place, f" (in a {place})")


def _advice(advice: str | None) -> list[str]:
    return [] if advice is None else [f"  {advice}"]


def _origin(join: ExplainedJoin) -> list[str]:
    origin = join.origin
    detail = "" if origin.detail is None else f" ({origin.detail})"
    return [f"{origin.status}: {origin.text}{detail}", *_advice(origin.advice)]


def _inputs(inputs: Sequence[ExplainedInput]) -> list[str]:
    """A line for each input, with its first three columns aligned."""
    cells = [
        (
            f"input {each.position}",
            each.role or "",
            each.source + (f" [{', '.join(each.key)}]" if each.key else ""),
        )
        for each in inputs
    ]
    widths = [max(map(len, column)) for column in zip(*cells)]
    lines = []
    for each, row in zip(inputs, cells):
        columns = [cell.ljust(width) for cell, width in zip(row, widths) if width]
        lines.append("  ".join([*columns, _notes(each)]).rstrip())
    return lines


def _notes(given: ExplainedInput) -> str:
    own = [each for each in given.filters if each not in given.pushed]
    notes = [] if given.narrowed_from is None else [f"was {given.narrowed_from}"]
    for name, items in (("pushed", given.pushed), ("filter", own), ("read by", given.read)):
        if items:
            notes.append(f"{name}: {', '.join(items)}")
    return "; ".join([*notes, *([] if given.hint is None else [f"hint: {given.hint}"])])


def _work(join: ExplainedJoin) -> list[str]:
    """How the operator works, and the splits of its skewed partitions."""
    lines = []
    if join.execution is not None:
        lines.append(f"grouping: {join.execution.rows}; {_exchanges(join.execution)}")
        lines.append(f"null keys: {join.execution.null_keys}")
    several = len(set(join.operators)) > 1
    for skew in dict.fromkeys(join.skew):
        operator = f" of {skew.operator}" if several else ""
        lines += [f"skew{operator}: {_status(skew)}", *_advice(skew.advice)]
    return lines


def _exchanges(execution: Execution) -> str:
    if not execution.exchanges:
        return "exchanges: none"
    columns = f", columnar {execution.columns}" if execution.columns else ""
    # Rows of a source without columns are no news.
    why = ", ".join(each for each in execution.by_row if each != "from rows")
    by_row = f"; by row: {why}" if why else ""
    return (
        f"exchanges: {execution.exchanges} (bulk rows {execution.bulk}{columns}{by_row}); "
        f"key sampling: {execution.counted}"
    )


def _status(skew: ExplainedSkew) -> str:
    if skew.status == "split":
        return f"split, {skew.text}"
    return f"{'not split' if skew.status == 'whole' else skew.status}: {skew.text}"
