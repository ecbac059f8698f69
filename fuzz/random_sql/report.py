"""A failing example as text: all that is needed to see it again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from random_sql.engines import Engines
from random_sql.literals import values
from random_sql.reduce import Example
from random_sql.sinks import Rows
from random_sql.tree import DUCK, SPARK, VIEW, statements


def report(engines: Engines, example: Example, most: int) -> str:
    """Statements for spark-sql and DuckDB, sources, sink and answers."""
    lines = [f"SET {key}={value};" for key, value in sorted(example.settings.items())]
    for table in example.tables:
        where = f"{table.form}{', one partition' if table.whole else ''}"
        stack = f"; above: {', '.join(table.layers)}" if table.layers else ""
        inline = values(table.columns, table.rows)
        lines.append(f"CREATE OR REPLACE TEMPORARY VIEW {table.name} AS {inline};")
        lines.append(f"-- {table.name} was stored as: {where}{stack}")
        if table.noise:
            lines.append(f"-- filters removed from it: {values(table.columns, table.noise)}")
    spark, duck = statements(example.query, SPARK), statements(example.query, DUCK)
    lines += [f"{statement};" for statement in spark]
    lines += [
        f"-- {each.name} was: {each.how} {each.technique}"
        for each in example.query.withs
        if each.view and each.how != VIEW
    ]
    if spark != duck:
        lines += ["-- for DuckDB:", *(f"{statement};" for statement in duck)]
    lines.append(f"-- sink: {example.sink}")
    engines.load(example.tables)
    for who, answer in _answers(engines, example, most).items():
        lines.append(f"-- {who}: {answer}")
    return "\n".join(lines)


def _answers(engines: Engines, example: Example, most: int) -> Mapping[str, str]:
    """Each one's rows, or its error."""

    def shown(rows: Rows | None) -> str:
        listed = sorted((rows or Counter()).items(), key=repr)
        return ", ".join(f"{times} x {row}" for row, times in listed) or "no rows"

    ways: dict[str, Callable[[], str]] = {
        "with the extension": lambda: shown(engines.spark(example, example.settings).rows),
        "without": lambda: shown(engines.stock(example.query, example.settings)),
        "DuckDB": lambda: shown(engines.duck(example.query, most)),
    }
    found = {}
    for who, ask in ways.items():
        try:
            found[who] = ask()
        except Exception as error:
            found[who] = f"{type(error).__name__}: {str(error).strip()[:500]}"
    return found
