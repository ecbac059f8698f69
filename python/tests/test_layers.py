"""The modules of the package keep to the drawing in docs/architecture.md.

A module imports only what stands in lines below its own, at its top or inside of a function, and
the modules of a package form no circle.
"""

from __future__ import annotations

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = "pyspark_skewext"
FILES = sorted((ROOT / "python" / PACKAGE).rglob("*.py"))


def module_of(file: Path) -> str:
    parts = file.relative_to(ROOT / "python").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(file): file for file in FILES}


def drawn() -> list[list[str]]:
    """The lines of the drawing, each a list of what stands in it; the uppermost comes first."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    found = re.search(r"^## Python\n.*?^```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert found is not None
    # What follows two spaces says what the line is for.
    return [line.split("  ")[0].split() for line in found.group(1).splitlines()]


def imported(source: str) -> set[str]:
    """The modules of the package that are imported anywhere in it."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports have the full name of a module"
            inside = {alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            names |= {full if full in MODULES else str(node.module) for full in inside.values()}
    return {name for name in names if name.split(".")[0] == PACKAGE}


def unit(module: str) -> str:
    """What stands for the module in the drawing; the package itself for what users import."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else PACKAGE


def upwards(edges: dict[str, set[str]]) -> list[str]:
    """The imports that the drawing lacks."""
    level = {name: number for number, names in enumerate(drawn()) for name in names}
    return [
        f"{module} imports {other}"
        for module, others in sorted(edges.items())
        for other in sorted(others)
        if unit(module) != unit(other) and level[unit(module)] >= level[unit(other)]
    ]


EDGES = {module: imported(file.read_text(encoding="utf-8")) for module, file in MODULES.items()}


def test_every_module_is_drawn_once() -> None:
    names = [name for names in drawn() for name in names]
    assert sorted(names) == sorted({unit(module) for module in MODULES})


def test_modules_import_only_from_below() -> None:
    assert upwards(EDGES) == []


def test_no_circles() -> None:
    list(TopologicalSorter(EDGES).static_order())


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("results.skew", "def show():\n    from pyspark_skewext.render import page"),
        ("render.page", "import pyspark_skewext.report.skew"),
        ("_engine.classic", "from pyspark_skewext._validate import Input"),
        ("_errors", "from pyspark_skewext import _jvm"),
        ("buckets", "from pyspark_skewext.report import skew_report"),
        ("cli", "from pyspark_skewext import __main__"),
        ("explanation", "from pyspark_skewext import jar_path"),
    ],
)
def test_an_import_upwards_or_sidewards_is_found(module: str, source: str) -> None:
    assert len(upwards({f"{PACKAGE}.{module}": imported(source)})) == 1


def test_a_circle_is_found() -> None:
    back = EDGES[f"{PACKAGE}.render.values"] | {f"{PACKAGE}.render.skew"}
    with pytest.raises(CycleError):
        list(TopologicalSorter({**EDGES, f"{PACKAGE}.render.values": back}).static_order())
