"""What plan-time.json says, as tables in the project's pages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.tables import table

BENCH = Path(__file__).resolve().parents[1]
RESULTS = BENCH / "results" / "plan-time.json"
#: The comments around its tables name it.
TOOL = "plan_time.py"

STOCK, OURS = "stock", "ours"


def pages() -> dict[Path, str]:
    """The pages and their tables; none before it was measured."""
    if not RESULTS.exists():
        return {}
    found = json.loads(RESULTS.read_text(encoding="utf-8"))["queries"]
    docs = BENCH.parent / "docs"
    return {docs / "performance.md": table(rows(found)), docs / "rewrite.md": table(short(found))}


def rows(found: Sequence[dict[str, Any]]) -> list[list[str]]:
    """All of it."""
    head = ["query", "stock, ms", "ours, ms", "ours / stock, of the minima", "median of pairs"]
    listed = [[*head, "our operators", "goal"]]
    for each in found:
        ratio = each["ratio"]
        least = [f"{each[v]['min_ms']:.2f} ({each[v]['median_ms']:.2f})" for v in (STOCK, OURS)]
        listed.append(
            [
                f"{each['query']}: {each['about']}",
                *least,
                f"{ratio['of_minima']:.3f}",
                f"{ratio['median']:.3f} ({ratio['low']:.3f} to {ratio['high']:.3f})",
                str(each[OURS]["multi_full_joins"]),
                f"<= {each['goal']:g}: {'reached' if each['reached'] else 'not reached'}",
            ]
        )
    return listed


def short(found: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Of chains, and of queries without a join, what a user wants to know."""
    listed = [["query", "stock Spark, ms", "with the extension, ms", "ratio, median of pairs"]]
    for each in found:
        chain = each["query"].startswith("chain-")
        if chain or each["about"] == "no join":
            name = each["about"] if chain else f"{each['query']}, no join"
            least = [f"{each[variant]['min_ms']:.2f}" for variant in (STOCK, OURS)]
            listed.append([name, *least, f"{each['ratio']['median']:.2f}"])
    return listed
