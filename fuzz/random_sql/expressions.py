"""Random expressions over the columns of a relation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

from random_sql.columns import Col, Keys, Relation
from random_sql.tables import LOOKS, is_raw
from random_sql.tree import Expr, Item, Op, Ref, coalesce

#: Values to compare with, as both engines read them.
LITERALS = {
    "number": ("0", "1", "2", "3"),
    "text": ("''", "'a'", "'A'"),
    "date": ("DATE '1969-12-31'", "DATE '2024-02-29'"),
    "decimal": ("CAST(1.50 AS DECIMAL(5,2))", "CAST(-2.25 AS DECIMAL(5,2))"),
    "double": ("CAST(0.0 AS DOUBLE)", "CAST(1.5 AS DOUBLE)"),
    "truth": ("true", "false"),
}

#: Functions of one argument; the first keep different values different.
FUNCTIONS = {
    "number": ("({} + 1)", "CAST({} AS BIGINT)", "({} % 2)"),
    "text": ("({} || 'x')", "upper({})", "substring({}, 1, 1)"),
    "date": ("CAST({} AS STRING)", "year({})"),
    "decimal": ("CAST({} AS DECIMAL(15,4))", "({} + 1)"),
    "double": ("({} * 2)",),
    "truth": ("(NOT {})",),
}

#: Weights lean to what lets rows through, or the answers would be empty.
_TESTS = (
    *("{} IS NOT NULL",) * 3,
    *("{} IS NULL",) * 2,
    *("{} >= $",) * 2,
    *("{} <> $",) * 2,
    "{} = $",
    "{} IN ($, $)",
    "{} < $",
    "NOT ({} = $)",
    "coalesce({}, $) <> $",
    "({} = $ OR {} IS NULL)",
    "({} > $) IS NOT TRUE",
)

#: The last ones are ranges that are open at an end, or at both.
_COMPARISONS = (
    *("{} <= {}", "{} <> {}", "{} = {}", "same") * 2,
    "({0} < {1} OR {1} IS NULL)",
    "({0} < {1} OR {0} IS NULL OR {1} IS NULL)",
    "({1} IS NULL OR {0} >= {1} OR {0} IS NULL)",
)


class Expressions:
    """Makes them; all it takes from elsewhere is chance."""

    def __init__(self, random: Random) -> None:
        self._random = random

    # Keys

    def full_key(self, relation: Relation, name: str) -> Col:
        """What every row has that has the key at all."""
        random = self._random
        if name in relation.merged and random.random() < 0.6:
            return relation.merged[name]
        parts = list(relation.keys[name])
        if random.random() < 0.4:
            random.shuffle(parts)
        return replace(relation.full(name), expr=self._coalesced([p.expr for p in parts]))

    def some_key(self, relation: Relation, name: str) -> Col:
        """A part of the key, one input's key, another column: mostly not the key of the row."""
        random = self._random
        family = relation.keys[name][0].family
        parts = list(relation.keys[name])
        choice = random.randrange(6)
        if choice <= 1 and len(parts) > 1:
            few = random.sample(parts, random.randint(1, len(parts) - 1))
            return self._together(relation, few)
        if choice == 2:
            default = Op(random.choice(LITERALS[family]))
            key = relation.full(name)
            return Col(Op("coalesce", (key.expr, default)), family, relation.rows, False)
        if choice == 3 and len(parts) > 1:
            first, *others = parts
            made = Op(FUNCTIONS["number"][0] if family == "number" else "{}", (first.expr,))
            exprs = (made, *(p.expr for p in others))
            return Col(coalesce(*exprs), family, relation.rows)
        known = (*relation.own_keys, *relation.values, *self._looks(relation))
        alike = [c for c in known if c.family == family]
        return random.choice(alike) if alike else relation.full(name)

    def _together(self, relation: Relation, parts: Sequence[Col]) -> Col:
        repeats = min(relation.rows, sum(part.repeats for part in parts))
        return Col(self._coalesced([p.expr for p in parts]), parts[0].family, repeats)

    def _coalesced(self, exprs: Sequence[Expr]) -> Expr:
        """Of all in this order, sometimes nested."""
        random = self._random
        if len(exprs) > 2 and random.random() < 0.4:
            cut = random.randint(1, len(exprs) - 1)
            return coalesce(self._coalesced(exprs[:cut]), self._coalesced(exprs[cut:]))
        return coalesce(*exprs)

    # Predicates

    def predicate(self, relation: Relation) -> Expr:
        """A condition on one or two columns."""
        random = self._random
        if random.random() < 0.03:
            # Always true, which no optimizer knows.
            return Op("({} >= 0)", (Op("rand"),))
        if random.random() < 0.15:
            form = random.choice(("({} OR {})", "({} AND {})", "(NOT ({} AND {}))"))
            return Op(form, (self._test(relation), self._test(relation)))
        if random.random() < 0.15:
            return self.comparison(relation, relation)
        return self._test(relation)

    def comparison(self, one: Relation, other: Relation) -> Expr:
        """Two columns of one family."""
        random = self._random
        ours, theirs = self._columns(one), self._columns(other)
        pairs = [(a, b) for a in ours for b in theirs if a.family == b.family and a != b]
        if not pairs:
            return self._test(one)
        a, b = random.choice(pairs)
        form = random.choice(_COMPARISONS)
        return Op(form, (a.expr, b.expr))

    def _test(self, relation: Relation) -> Expr:
        random = self._random
        col = random.choice(self._columns(relation))
        if random.random() < 0.15:
            col = self._function_of(col)
        form = random.choice(_TESTS)
        while "$" in form:
            form = form.replace("$", random.choice(LITERALS[col.family]), 1)
        return Op(form, (col.expr,) * form.count("{}"))

    def _columns(self, relation: Relation) -> list[Col]:
        full = [self.full_key(relation, name) for name in relation.keys]
        values = [col for col in relation.values if not is_raw(col.family)]
        return [*full, *full, *relation.own_keys, *values, *values, *self._looks(relation)]

    def _looks(self, relation: Relation) -> list[Col]:
        """What is inside of nested columns."""
        return [
            Col(Op(look.name, (col.expr,)), look.family, relation.rows)
            for col in relation.values
            for look in LOOKS.get(col.family, ())
        ]

    # Columns

    def function(self, family: str) -> str:
        """A function of a key that is to be compared with the same of another."""
        return self._random.choice(FUNCTIONS[family])

    def projected(
        self, relation: Relation, top: bool, distinct: bool, extra: Sequence[Col] = ()
    ) -> tuple[tuple[Item, ...], Relation]:
        """Columns, renamed ones and computed ones; but for the top, a key for the joins above."""
        random = self._random
        keys = {"k": self._key(relation, "k")}
        if "j" in relation.keys and random.random() < 0.6:
            keys["j"] = self._key(relation, "j")
        # Maps have no order, so nothing distinct.
        shown = [col for col in relation.values if not distinct or not is_raw(col.family)]
        values = random.sample(shown, min(len(shown), random.randint(0, 4)))
        if top and random.random() < 0.5:
            values += random.sample(relation.own_keys, min(len(relation.own_keys), 2))
        made = [self.computed(relation) for _ in range(random.choice((0, 0, 1, 1, 2, 3)))]
        choice = random.random()
        if not distinct and choice < 0.08:
            made.append(self._window(relation))
        elif not distinct and choice < 0.12:
            # Each row twice.
            made.append(self._exploded(relation))
            keys = {name: col.repeated(col.repeats * 2) for name, col in keys.items()}
            values = [col.repeated(col.repeats * 2) for col in values]
            relation = replace(relation, rows=relation.rows * 2)
        return self._items(relation, keys, [*values, *made, *extra])

    def aggregated(
        self, relation: Relation, top: bool
    ) -> tuple[tuple[Item, ...], tuple[Expr, ...], Relation]:
        """Groups, mostly by a key, and aggregates."""
        random = self._random
        keys = {"k": self._key(relation, "k")}
        if "j" in relation.keys and random.random() < 0.2:
            keys["j"] = self._key(relation, "j")
        grouped = []
        if random.random() < 0.2:
            made = self.computed(relation)
            # A number would mean the column at that place.
            grouped += [made] if isinstance(made.expr, Op) and made.expr.args else []
        if top and random.random() < 0.15:
            keys, grouped = {}, []
        elif len(keys) == 1 and not grouped:
            keys["k"] = replace(keys["k"], repeats=1)
        aggregates = [self._aggregate(relation) for _ in range(random.randint(1, 3))]
        items, given = self._items(relation, keys, [*grouped, *aggregates])
        group = tuple(col.expr for col in (*keys.values(), *grouped))
        return items, group, given

    def computed(self, relation: Relation) -> Col:
        """A column made of those of one input, or of several."""
        random = self._random
        columns = self._columns(relation)
        a = random.choice(columns)
        alike = [col for col in columns if col.family == a.family and col != a]
        b = random.choice(alike) if alike else a
        literal = Op(random.choice(LITERALS[a.family]))
        makers: tuple[Callable[[], Col], ...] = (
            lambda: self._function_of(a),
            lambda: Col(coalesce(a.expr, b.expr), a.family, relation.rows),
            lambda: Col(coalesce(a.expr, literal), a.family, relation.rows),
            lambda: Col(coalesce(a.expr, b.expr, literal), a.family, relation.rows),
            lambda: Col(Op("({} IS NULL)", (a.expr,)), "truth", relation.rows),
            lambda: Col(Op("({} = {})", (a.expr, b.expr)), "truth", relation.rows),
            lambda: Col(literal, a.family, relation.rows),
            lambda: Col(
                Op("CASE WHEN {} IS NULL THEN {} ELSE {} END", (a.expr, literal, a.expr)),
                a.family,
                relation.rows,
            ),
            lambda: Col(
                Op(
                    "CASE WHEN {} IS NULL THEN 'not' WHEN {} IS NULL THEN 'only' ELSE 'both' END",
                    (a.expr, random.choice(columns).expr),
                ),
                "text",
                relation.rows,
            ),
            lambda: Col(
                Op("CASE WHEN {} < 2 THEN {} END", (Op("rand"), a.expr)), a.family, relation.rows
            ),
        )
        # The last one is not deterministic, and is a reason to leave a chain alone.
        weights = [2] * (len(makers) - 1) + [0.4]
        return random.choices(makers, weights)[0]()

    def _key(self, relation: Relation, name: str) -> Col:
        right = self._random.random() < 0.85
        return self.full_key(relation, name) if right else self.some_key(relation, name)

    def _function_of(self, col: Col) -> Col:
        function = self._random.choice(FUNCTIONS[col.family])
        family = {"CAST({} AS STRING)": "text", "year({})": "number"}.get(function, col.family)
        return Col(Op(function, (col.expr,)), family, col.repeats * 100)

    def _window(self, relation: Relation) -> Col:
        key = self.full_key(relation, "k") if self._random.random() < 0.7 else None
        key = key or self.some_key(relation, "k")
        value = self._random.choice(self._columns(relation))
        forms = ["count({1})", "max({1})", "min({1})"]
        # Rows of one place in the order get one answer; `lag` would tell them apart.
        ordered = self._random.random() < 0.5
        forms += ["rank()", "first_value({1})", "dense_rank()"] if ordered else []
        form = self._random.choice(forms)
        family = value.family if form[:3] in ("max", "min", "fir") else "number"
        order = " ORDER BY {1} NULLS FIRST" if ordered else ""
        over = f"{form} OVER (PARTITION BY {{0}}{order})"
        return Col(Op(over, (key.expr, value.expr)), family, relation.rows)

    def _exploded(self, relation: Relation) -> Col:
        columns = self._columns(relation)
        a = self._random.choice(columns)
        b = self._random.choice([col for col in columns if col.family == a.family])
        return Col(Op("explode", (a.expr, b.expr)), a.family, relation.rows * 2)

    def _aggregate(self, relation: Relation) -> Col:
        col = self._random.choice(self._columns(relation))
        forms = ["count(*)", "count({})", "count(DISTINCT {})", "min({})", "max({})"]
        if col.family in ("number", "decimal"):
            forms += ["sum({})"] * 2
        form = self._random.choice(forms)
        family = "number" if form.startswith("count") else col.family
        args = (col.expr,) if "{}" in form else ()
        return Col(Op(form, args), family, relation.rows)

    def _items(
        self, relation: Relation, keys: dict[str, Col], others: Sequence[Col]
    ) -> tuple[tuple[Item, ...], Relation]:
        """Name the columns: each in its own way, so that USING means keys alone."""
        items: list[Item] = []
        values: list[Col] = []
        given: Keys = {}
        for name, col in keys.items():
            items.append(Item(name, col.expr))
            given[name] = (replace(col, expr=Ref(None, name)),)
        used = set(keys)
        for number, col in enumerate(others):
            own = col.expr.name if isinstance(col.expr, Ref) else "k"
            free = (f"c{n}" for n in range(number, 1000) if f"c{n}" not in used)
            name = own if own not in ("k", "j") and own not in used else next(free)
            used.add(name)
            items.append(Item(name, col.expr))
            values.append(replace(col, expr=Ref(None, name)))
        return tuple(items), Relation(relation.rows, given, tuple(values))
