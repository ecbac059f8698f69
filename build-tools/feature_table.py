"""Write the table of features by line of Spark in docs/compatibility.md from the reports of tests.

    build-tools/feature_table.py target/spark-3.5 target/spark-4.2

It reads the JUnit reports that sbt and pytest leave in each folder. A cell has the number of tests
that passed, and of those that failed. The last column has the days of the reports.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

PAGE = Path(__file__).parents[1] / "docs" / "compatibility.md"
BEGIN, END = "<!-- tests by feature -->\n", "<!-- end of tests by feature -->"

#: The Scala packages below io.github.skewext, and the Python files, whose tests are of a feature.
FEATURES = {
    "operator": "join rows inputs nullkeys test_joins test_plans test_property test_broadcast "
    "test_coalesced_keys",
    "rewrite": "rewrite sparktests test_random_sql test_tpcds",
    "split": "skew test_skew test_cluster_faults",
    "exchange": "shuffle",
    "buckets": "bucket test_buckets test_buckets_pruned",
    "MERGE": "merge test_lakehouse",
    "Connect": "test_connect",
    "UI": "explain.ui",
    "as-of": "asof latest test_asof",
}


class Case(NamedTuple):
    """A test that ran; `of` is its Scala package or its Python file."""

    of: str
    result: str
    day: str


def cases_in(folder: Path) -> Iterator[Case]:
    """The tests of a line that were not skipped."""
    reports = [*sorted(folder.glob("test-reports/*.xml")), *folder.glob("pytest.xml")]
    for report in reports:
        for suite in ElementTree.parse(report).iter("testsuite"):
            for case in suite.iter("testcase"):
                kinds = {child.tag for child in case}
                if "skipped" not in kinds:
                    result = "failed" if kinds & {"failure", "error"} else "passed"
                    yield Case(case.attrib["classname"], result, suite.attrib["timestamp"][:10])


def is_of(test: str, part: str) -> bool:
    """Whether a suite is in the package, or a class name of pytest is of the file."""
    return bool(re.match(rf"io\.github\.skewext\.{part}\.|(?:.*\.)?{part}(?:\.[A-Z]\w*)?$", test))


def row(folder: Path) -> list[str]:
    """The cells of a line of Spark."""
    cases = list(cases_in(folder))
    cells = []
    for parts in FEATURES.values():
        counts = Counter(
            case.result for case in cases if any(is_of(case.of, part) for part in parts.split())
        )
        failed = f", {counts['failed']} failed" if counts["failed"] else ""
        cells.append(f"{counts['passed']}{failed}" if counts else "not run")
    days = sorted({case.day for case in cases})
    line = folder.name.replace("spark-", "")
    return [line, *cells, " to ".join(dict.fromkeys([days[0], days[-1]])) if days else "none"]


def table(folders: list[Path]) -> str:
    """The table in Markdown."""
    head = ["line", *FEATURES, "reports of"]
    rows = [head, ["---"] * len(head), *map(row, folders)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in rows)


def with_table(page: str, text: str) -> str:
    """The page with the table between its marks."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}{text}{END}{after}"


def main(folders: list[str]) -> int:
    """Rewrite the page."""
    text = table(list(map(Path, folders)))
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), text), encoding="utf-8")
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
