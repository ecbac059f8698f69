"""Nested types with nulls at each level, and expressions that look into them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Look:
    """An expression over a nested column, in both dialects, and the family of its type."""

    name: str
    family: str
    spark: str
    duck: str


@dataclass(frozen=True)
class Nested:
    """A nested type, its values as SQL, and the expressions that look into it."""

    spark: str
    duck: str
    values: tuple[tuple[str, str], ...]
    looks: tuple[Look, ...]


def _some(name: str, test: str, array: str = "{0}", list_: str = "{0}") -> Look:
    """Whether a test is true for one of the elements."""
    return Look(
        f"exists {name}",
        "truth",
        f"coalesce(exists({array}, e -> {test}), false)",
        f"coalesce(len(list_filter({list_}, e -> {test})) > 0, false)",
    )


def _all(name: str, test: str, array: str = "{0}", list_: str = "{0}") -> Look:
    return Look(
        f"forall {name}",
        "truth",
        f"coalesce(forall({array}, e -> coalesce({test}, false)), false)",
        f"coalesce(len(list_filter({list_}, e -> {test})) = len({list_}), false)",
    )


def _count(name: str, test: str, array: str = "{0}", list_: str = "{0}") -> Look:
    return Look(
        f"filter {name}",
        "number",
        f"array_size(filter({array}, e -> {test}))",
        f"len(list_filter({list_}, e -> {test}))",
    )


def _same(name: str, family: str, text: str) -> Look:
    return Look(name, family, text, text)


_ITEM = "get({0}, 0)"
_LIST_ITEM = "({0})[1]"

NESTED = (
    Nested(
        "array<int>",
        "INTEGER[]",
        (
            ("array(1, NULL, 3)", "[1, NULL, 3]"),
            ("array(CAST(NULL AS int), 2)", "[NULL, 2]"),
            ("CAST(array() AS array<int>)", "[]"),
        ),
        (
            Look("element of an array", "number", _ITEM, _LIST_ITEM),
            _some("over numbers", "e < 2"),
            _some("of nulls", "e IS NULL"),
            _all("over numbers", "e < 4"),
            _count("over numbers", "e <> 3"),
            _count("of no nulls", "e IS NOT NULL"),
            Look(
                "aggregate",
                "number",
                "aggregate({0}, 0, (a, e) -> a + coalesce(e, 10))",
                "CASE WHEN {0} IS NOT NULL THEN"
                " coalesce(list_sum(list_transform({0}, e -> coalesce(e, 10))), 0) END",
            ),
            Look(
                "element of a transformed array",
                "number",
                "get(transform({0}, e -> coalesce(e, 7)), 1)",
                "list_transform({0}, e -> coalesce(e, 7))[2]",
            ),
        ),
    ),
    Nested(
        "struct<a: int, b: string>",
        "STRUCT(a INTEGER, b VARCHAR)",
        (
            ("named_struct('a', 1, 'b', 'x')", "{'a': 1, 'b': 'x'}"),
            ("named_struct('a', CAST(NULL AS int), 'b', '')", "{'a': NULL, 'b': ''}"),
            ("named_struct('a', 3, 'b', CAST(NULL AS string))", "{'a': 3, 'b': NULL}"),
        ),
        (
            _same("field of a struct", "number", "({0}).a"),
            _same("text of a struct", "text", "({0}).b"),
            Look(
                "struct inside a lambda",
                "truth",
                "coalesce(exists(array(1, 2), e -> ({0}).a < e + 1), false)",
                "coalesce(len(list_filter([1, 2], e -> ({0}).a < e + 1)) > 0, false)",
            ),
        ),
    ),
    Nested(
        "struct<s: struct<a: int, b: string>, n: double>",
        "STRUCT(s STRUCT(a INTEGER, b VARCHAR), n DOUBLE)",
        (
            (
                "named_struct('s', named_struct('a', 1, 'b', 'x'), 'n', 1.5D)",
                "{'s': {'a': 1, 'b': 'x'}, 'n': 1.5}",
            ),
            (
                "named_struct('s', named_struct('a', CAST(NULL AS int), 'b', 'A'),"
                " 'n', CAST(NULL AS double))",
                "{'s': {'a': NULL, 'b': 'A'}, 'n': NULL}",
            ),
            (
                "named_struct('s', CAST(NULL AS struct<a: int, b: string>), 'n', 0.0D)",
                "{'s': NULL, 'n': 0.0}",
            ),
        ),
        (
            _same("field of a struct of structs", "number", "(({0}).s).a"),
            _same("text of a struct of structs", "text", "(({0}).s).b"),
            _same("double of a struct", "double", "({0}).n"),
        ),
    ),
    Nested(
        "array<struct<a: int, b: string>>",
        "STRUCT(a INTEGER, b VARCHAR)[]",
        (
            (
                "array(named_struct('a', 1, 'b', 'x'), NULL)",
                "[{'a': 1, 'b': 'x'}, NULL]",
            ),
            (
                "array(named_struct('a', CAST(NULL AS int), 'b', 'a'),"
                " named_struct('a', 7, 'b', CAST(NULL AS string)))",
                "[{'a': NULL, 'b': 'a'}, {'a': 7, 'b': NULL}]",
            ),
            ("CAST(array() AS array<struct<a: int, b: string>>)", "[]"),
        ),
        (
            Look("field of an element", "number", f"({_ITEM}).a", f"({_LIST_ITEM}).a"),
            _some("over structs", "e.a < 5"),
            _some("of null fields", "e.b IS NULL"),
            _count("over structs", "e.a > 0"),
        ),
    ),
    Nested(
        "map<string, int>",
        "MAP(VARCHAR, INTEGER)",
        (
            ("map('a', 1, 'b', NULL)", "MAP {'a': 1, 'b': NULL}"),
            ("map('a', CAST(NULL AS int), 'b', 2)", "MAP {'a': NULL, 'b': 2}"),
            ("CAST(map() AS map<string, int>)", "MAP {}"),
        ),
        (
            Look(
                "value of a map",
                "number",
                "try_element_at({0}, 'a')",
                "map_extract({0}, 'a')[1]",
            ),
            Look(
                "map_filter",
                "number",
                "array_size(map_keys(map_filter({0}, (k, e) -> e < 2)))",
                "len(list_filter(map_values({0}), e -> e < 2))",
            ),
            Look(
                "transform_values",
                "number",
                "try_element_at(transform_values({0}, (k, e) -> coalesce(e, 7)), 'b')",
                "list_transform(map_extract({0}, 'b'), e -> coalesce(e, 7))[1]",
            ),
            _count("over values", "e IS NULL", "map_values({0})", "map_values({0})"),
        ),
    ),
    Nested(
        "map<string, array<int>>",
        "MAP(VARCHAR, INTEGER[])",
        (
            ("map('a', array(1, NULL), 'b', NULL)", "MAP {'a': [1, NULL], 'b': NULL}"),
            ("map('a', array(CAST(NULL AS int)))", "MAP {'a': [NULL]}"),
        ),
        (
            Look(
                "element of an array in a map",
                "number",
                "get(try_element_at({0}, 'a'), 0)",
                "map_extract({0}, 'a')[1][1]",
            ),
            _some(
                "over an array in a map",
                "e < 2",
                "try_element_at({0}, 'a')",
                "map_extract({0}, 'a')[1]",
            ),
        ),
    ),
)

#: What both dialects call a look.
FORMS = {look.name: (look.spark, look.duck) for nested in NESTED for look in nested.looks}
