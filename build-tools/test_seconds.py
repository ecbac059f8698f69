"""Write how long suites and test files take to build-tools/test_seconds.tsv; print slow tests.

    build-tools/test_seconds.py target/spark-3.5 target/spark-4.2

build.sbt and python/conftest.py start the longest ones first and share them out to equal sums. The
program reads the JUnit reports that sbt and pytest left in the folders, after tests with
`SKEWEXT_TEST_SLOW=1`. For a name in several folders the first counts. The slow tests of the first
folder should have the tag `Slow` in Scala and the mark `slow` in Python: `make test` leaves those
out.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

SUITES = Path(__file__).with_name("test_seconds.tsv")

#: A test that takes as long is slow.
SLOW = 2.0


def tests_in(folder: Path) -> Iterator[tuple[str, str, float]]:
    """Suite or Python file, test and seconds of each test that ran."""
    for report in [*folder.glob("test-reports/*.xml"), *folder.glob("pytest.xml")]:
        end = ".py" if report.name == "pytest.xml" else ""
        for case in ElementTree.parse(report).iter("testcase"):
            if case.find("skipped") is None:
                suite = case.attrib["classname"].split(".")[-1] + end
                yield suite, case.attrib["name"], float(case.attrib["time"])


def main(folders: list[str]) -> int:
    """Write the file; print the slow tests, the slowest first."""
    suites: dict[str, float] = {}
    for folder in folders[::-1]:
        found: Counter[str] = Counter()
        for suite, _, took in tests_in(Path(folder)):
            found[suite] += took
        suites |= found
    if not suites:
        print("There are no reports: run the tests first.", file=sys.stderr)
        return 1
    rows = sorted((-round(took), name) for name, took in suites.items() if took >= 0.5)
    SUITES.write_text("".join(f"{name}\t{-took}\n" for took, name in rows), encoding="utf-8")
    for suite, test, took in sorted(tests_in(Path(folders[0])), key=lambda row: -row[2]):
        if took >= SLOW:
            print(f"{took:6.1f} s  {suite}: {test}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
