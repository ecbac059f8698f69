"""Write build-tools/test_seconds.tsv: the seconds that each Scala suite and Python test file takes.

    build-tools/test_seconds.py target/spark-3.5 target/spark-4.2

build.sbt and python/conftest.py start the longest first and share them out to equal sums. It reads
the JUnit reports that sbt and pytest left in the folders. The first folder that has a name counts.
"""

import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

SECONDS = Path(__file__).with_name("test_seconds.tsv")


def seconds_in(folder: Path) -> Counter[str]:
    """Seconds by the simple class name of a suite, or the name of a Python file."""
    found: Counter[str] = Counter()
    for report in folder.glob("test-reports/*.xml"):
        suite = ElementTree.parse(report).getroot()
        found[suite.attrib["name"].split(".")[-1]] += float(suite.attrib["time"])
    pytest = folder / "pytest.xml"
    for case in ElementTree.parse(pytest).iter("testcase") if pytest.exists() else ():
        found[case.attrib["classname"].split(".")[-1] + ".py"] += float(case.attrib["time"])
    return found


def main(folders: list[str]) -> int:
    """Write the file, the longest first."""
    seconds: dict[str, float] = {}
    for folder in folders:
        seconds = {**seconds_in(Path(folder)), **seconds}
    if not seconds:
        print("There are no reports: run `make test` first.", file=sys.stderr)
        return 1
    rows = sorted(((-round(took), name) for name, took in seconds.items() if took >= 0.5))
    SECONDS.write_text("".join(f"{name}\t{-took}\n" for took, name in rows), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
