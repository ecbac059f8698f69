"""What became of a query's joins and bucketed tables, as text and in notebooks.

Made of what ``Explanation.to_dict`` gives. The lines are the same in both.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

_PLACES = {"query": "", "cached data": " (in a cached table)"}


def as_text(content: dict[str, Any]) -> str:
    """Write an entry for each join and each scan, below the notes."""
    entries = [*content["notes"], *_nothing(content)]
    entries += [
        _entry(
            f"Join {join['number']}{_place(join)}: {join['title']}",
            [*_origin(join["origin"]), *_inputs(join["inputs"]), *_work(join)],
        )
        for join in content["joins"]
    ]
    entries += [
        _entry(
            f"Scan {scan['number']}{_place(scan)}: {scan['source']}, {scan['buckets']} buckets by "
            f"[{', '.join(scan['by'])}]",
            _reading(scan),
        )
        for scan in content["scans"]
    ]
    return "\n\n".join(entries)


def as_html(content: dict[str, Any]) -> str:
    """Write a table of the joins and one of the scans, below the notes."""
    said = [*content["notes"], *_nothing(content)]
    parts = [f"<p>{html.escape(each)}</p>" for each in said]
    if content["joins"]:
        rows = [
            (
                [str(join["number"])],
                [join["title"], _place(join)],
                _origin(join["origin"]),
                _inputs(join["inputs"]),
                [", ".join(join["operators"]), *_work(join)],
            )
            for join in content["joins"]
        ]
        parts.append(_table(("", "join", "why", "inputs", "plan"), rows))
    if content["scans"]:
        scans = [
            (
                [str(scan["number"])],
                [f"{scan['source']}, by {', '.join(scan['by'])}", _place(scan)],
                _reading(scan),
            )
            for scan in content["scans"]
        ]
        parts.append(_table(("", "bucketed table", "buckets read"), scans))
    return f"<div>{''.join(parts)}</div>"


def _nothing(content: dict[str, Any]) -> list[str]:
    """Where a note says that nothing was looked at, nobody knows what joins there are."""
    return [] if content["notes"] or content["joins"] else ["No joins."]


def _entry(title: str, lines: Iterable[str]) -> str:
    return "\n  ".join([title, *lines])


def _table(names: Iterable[str], rows: Iterable[Sequence[Sequence[str]]]) -> str:
    header = "".join(f"<th>{name}</th>" for name in names)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>"


def _cell(lines: Sequence[str]) -> str:
    return f"<td>{'<br>'.join(html.escape(line.strip()) for line in lines if line)}</td>"


def _place(entry: dict[str, Any]) -> str:
    return _PLACES.get(entry["place"], f" (in a {entry['place']})")


def _origin(origin: dict[str, Any]) -> list[str]:
    detail = f" ({origin['detail']})" if origin["detail"] is not None else ""
    return [f"{origin['status']}: {origin['text']}{detail}", *_advice(origin)]


def _advice(about: dict[str, Any]) -> list[str]:
    return [] if about["advice"] is None else [f"  {about['advice']}"]


def _inputs(inputs: Sequence[dict[str, Any]]) -> list[str]:
    """A line for each, of which the first columns stand below each other."""
    cells = [
        (
            f"input {each['position']}",
            each["role"] or "",
            each["source"] + (f" [{', '.join(each['key'])}]" if each["key"] else ""),
        )
        for each in inputs
    ]
    widths = [max(map(len, column)) for column in zip(*cells)]
    lines = []
    for each, row in zip(inputs, cells):
        columns = [cell.ljust(width) for cell, width in zip(row, widths) if width]
        lines.append("  ".join([*columns, _notes(each)]).rstrip())
    return lines


def _notes(given: dict[str, Any]) -> str:
    own = [each for each in given["filters"] if each not in given["pushed"]]
    notes = [f"was {given['narrowed_from']}"] if given["narrowed_from"] is not None else []
    for name, items in (("pushed", given["pushed"]), ("filter", own), ("read by", given["read"])):
        if items:
            notes.append(f"{name}: {', '.join(items)}")
    if given.get("hint") is not None:
        notes.append(f"hint: {given['hint']}")
    return "; ".join(notes)


def _work(join: dict[str, Any]) -> list[str]:
    """How the operator works, and what became of skew."""
    lines = []
    execution = join["execution"]
    if execution is not None:
        lines += [
            f"grouping: {execution['rows']}; {_exchanges(execution)}",
            f"null keys: {execution['null_keys']}",
        ]
    told: list[dict[str, Any]] = []
    for skew in join["skew"]:
        if skew not in told:
            told.append(skew)
            operator = f" of {skew['operator']}" if len(set(join["operators"])) > 1 else ""
            lines += [f"skew{operator}: {_status(skew)}", *_advice(skew)]
    return lines


def _exchanges(execution: dict[str, Any]) -> str:
    number = execution["exchanges"]
    if not number:
        return "exchanges: none"
    columns = f", columnar {execution['columns']}" if execution["columns"] else ""
    # Rows of a source that has no columns are no news.
    why = ", ".join(each for each in execution["by_row"] if each != "from rows")
    by_row = f"; by row: {why}" if why else ""
    return (
        f"exchanges: {number} (bulk rows {execution['bulk']}{columns}{by_row}); "
        f"key sampling: {execution['counted']}"
    )


def _status(skew: dict[str, Any]) -> str:
    if skew["status"] == "split":
        return f"split, {skew['text']}"
    status = "not split" if skew["status"] == "whole" else skew["status"]
    return f"{status}: {skew['text']}"


def _reading(scan: dict[str, Any]) -> list[str]:
    partitions = f", in {scan['partitions']} partitions" if scan["partitions"] is not None else ""
    lines = [f"reads {scan['read']} of {scan['buckets']} buckets{partitions}: {scan['why']}"]
    return lines + _advice(scan)
