"""Write how long tests take: build-tools/test_seconds.tsv by suite, slow_tests.tsv by test.

    build-tools/test_seconds.py target/spark-3.5 target/spark-4.2

build.sbt and python/conftest.py start the longest suites first and share them out to equal sums.
`make test` leaves out the tests of the second file, which CI runs. The program reads the JUnit
reports that sbt and pytest left in the folders. The first folder that has a name counts.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from xml.etree import ElementTree

SUITES = Path(__file__).with_name("test_seconds.tsv")
TESTS = Path(__file__).with_name("slow_tests.tsv")

#: From here on a test is slow.
SLOW = 2.0


def tests_in(folder: Path) -> Iterator[tuple[str, str, float]]:
    """Suite or Python file, test and seconds of each test that ran."""
    for report in folder.glob("test-reports/*.xml"):
        for case in ElementTree.parse(report).iter("testcase"):
            if case.find("skipped") is None:
                yield case.attrib["classname"].split(".")[-1], case.attrib["name"], _seconds(case)
    pytest = folder / "pytest.xml"
    for case in ElementTree.parse(pytest).iter("testcase") if pytest.exists() else ():
        yield case.attrib["classname"].split(".")[-1] + ".py", case.attrib["name"], _seconds(case)


def _seconds(case: ElementTree.Element) -> float:
    return float(case.attrib["time"])


def write(file: Path, seconds: Mapping[str, float], least: float) -> None:
    """Write what takes at least so long, the longest first."""
    rows = sorted((-round(took), name) for name, took in seconds.items() if took >= least)
    file.write_text("".join(f"{name}\t{-took}\n" for took, name in rows), encoding="utf-8")


def leaves_out_slow(folder: Path) -> bool:
    """Whether most slow tests have no report: `make test` runs only some of them."""
    ran = {f"{suite}\t{test}" for suite, test, _ in tests_in(folder)}
    slow = [line.rsplit("\t", 1)[0] for line in TESTS.read_text("utf-8").splitlines()]
    return sum(name in ran for name in slow) < len(slow) / 2


def main(folders: list[str]) -> int:
    """Write both files."""
    suites: dict[str, float] = {}
    tests: dict[str, float] = {}
    for folder in folders:
        found: Counter[str] = Counter()
        for suite, test, took in tests_in(Path(folder)):
            found[suite] += took
            tests.setdefault(f"{suite}\t{test}", took)
        suites = {**found, **suites}
    if not suites:
        print("There are no reports: run `make test-ci` first.", file=sys.stderr)
        return 1
    if leaves_out_slow(Path(folders[0])):
        print("Slow tests did not run: run `make test-ci`, not `make test`.", file=sys.stderr)
        return 1
    write(SUITES, suites, 0.5)
    write(TESTS, tests, SLOW)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
