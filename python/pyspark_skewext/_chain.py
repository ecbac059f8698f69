"""A multi-way join as a chain of Spark's own joins, for servers without the extension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark_skewext._errors import analysis_error, value_error
from pyspark_skewext._validate import Input, same_name
from pyspark_skewext.roles import Role

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# The kind of a join by whether the keys of either side must be there.
_KINDS = {
    (False, False): "full",
    (True, False): "left",
    (False, True): "right",
    (True, True): "inner",
}


def chained(
    inputs: Sequence[Input],
    names: Sequence[str],
    roles: Sequence[Role],
    suffixes: Sequence[str | None] | None,
    indicator: str | None,
) -> DataFrame:
    """Join by public API alone; the columns and rows are those of the operator."""
    _check_counts(inputs, names, roles, suffixes)
    shown = [i for i, role in enumerate(roles) if role is not Role.EXCLUDED]
    columns = {i: _values(inputs[i]) for i in shown}
    final = _final_names(inputs, names, shown, columns, suffixes, indicator)
    keys = [f"key{j}" for j in range(len(names))]
    joined, needed = None, False
    for i in shown:
        own = _prepared(inputs[i], i, keys, columns[i])
        required = roles[i] is Role.REQUIRED
        joined = own if joined is None else joined.join(own, keys, _KINDS[needed, required])
        needed = needed or required
    if joined is None:
        raise value_error(
            "All inputs are excluded, so the join has no rows. Give an input another role."
        )
    for i, role in enumerate(roles):
        if role is Role.EXCLUDED:
            joined = joined.join(_prepared(inputs[i], i, keys, []), keys, "left_anti")
    from pyspark.sql.functions import col

    result: list[Column] = [col(key).alias(name) for key, name in zip(keys, names)]
    for i in shown:
        result += [
            col(f"value{i}_{c}").alias(final[i][position]) for position, c in enumerate(columns[i])
        ]
    if indicator is not None:
        result.append(_indicator(shown).alias(indicator))
    return joined.select(*result)


def _values(each: Input) -> list[int]:
    """The positions of the columns that are no keys."""
    same = same_name(each.df.sparkSession)
    return [
        position
        for position, name in enumerate(each.df.columns)
        if not any(same(name, key) for key in each.keys)
    ]


def _prepared(each: Input, i: int, keys: Sequence[str], values: Sequence[int]) -> DataFrame:
    """Nothing but the columns that are wanted, under names of which each occurs once."""
    from pyspark.sql.functions import col, lit

    columns = each.df.columns
    for name in each.keys:
        if columns.count(name) != 1:
            raise analysis_error(f"Input {i} (counting from 0) has several columns named {name!r}.")
    # By position: several columns may have one name.
    plain = each.df.toDF(*(f"c{position}" for position in range(len(columns))))
    found = [columns.index(name) for name in each.keys]
    return plain.select(
        *(col(f"c{position}").alias(key) for position, key in zip(found, keys)),
        *(col(f"c{position}").alias(f"value{i}_{position}") for position in values),
        lit(True).alias(f"has{i}"),
    )


def _indicator(shown: Sequence[int]) -> Column:
    from pyspark.sql.functions import array, col, filter, lit, when

    positions = array(*(when(col(f"has{i}"), lit(i)) for i in shown))
    return filter(positions, lambda position: position.isNotNull())


def _final_names(
    inputs: Sequence[Input],
    names: Sequence[str],
    shown: Sequence[int],
    columns: dict[int, list[int]],
    suffixes: Sequence[str | None] | None,
    indicator: str | None,
) -> dict[int, list[str]]:
    same = same_name(inputs[0].df.sparkSession)
    own = {i: [inputs[i].df.columns[c] for c in columns[i]] for i in shown}
    final = own
    if suffixes is not None:

        def elsewhere(i: int, name: str) -> bool:
            others = [other for j in shown if j != i for other in own[j]]
            return any(same(name, other) for other in [*names, *others])

        final = {
            i: [n + (suffixes[i] or "") if elsewhere(i, n) else n for n in own[i]] for i in shown
        }
    everything = [*names, *(name for i in shown for name in final[i])]
    for position, name in enumerate(everything):
        if suffixes is not None and any(same(name, other) for other in everything[:position]):
            raise value_error(
                f"With these suffixes the result would have two columns named {name!r}; give the "
                f"inputs that share a name different suffixes."
            )
        if indicator is not None and same(name, indicator):
            raise value_error(
                f"The indicator {indicator!r} has the name of a column of the result. "
                "Choose another name."
            )
    return final


def _check_counts(
    inputs: Sequence[Input],
    names: Sequence[str],
    roles: Sequence[Role],
    suffixes: Sequence[str | None] | None,
) -> None:
    if len(inputs) < 2:
        raise value_error(f"A multi-way join needs at least two inputs, got {len(inputs)}.")
    given = [("roles", len(roles))]
    if suffixes is not None:
        given.append(("suffixes", len(suffixes)))
    for what, count in given:
        if count != len(inputs):
            raise value_error(f"There are {len(inputs)} inputs, but {what} for {count}.")
    for position, each in enumerate(inputs):
        if len(each.keys) != len(names):
            raise value_error(
                f"Input {position} (counting from 0) has {len(each.keys)} key columns, the join "
                f"has {len(names)}."
            )
