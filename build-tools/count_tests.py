"""Print the slowest tests and `N passed, N failed` of a ScalaTest run; fail where it failed.

It reads the text of ScalaTest's file reporter. The JUnit reports of sbt show a cancelled test as
passed, and lack the tests of a JVM that died.
"""

import re
import sys
from pathlib import Path

SLOWEST = 10

# As in `- name of a test (1 minute, 12 seconds)`; units that are zero are left out.
DURATION = re.compile(
    r"^\s*- (?P<test>.*?)(?: \*\*\* FAILED \*\*\*)?"
    r" \((?P<time>\d+ (?:hour|minute|second|millisecond)s?(?:, \d+ [a-z]+)*)\)$"
)
SECONDS = {"hour": 3600.0, "minute": 60.0, "second": 1.0, "millisecond": 0.001}


def slowest(text: str) -> list[str]:
    """The tests that took longest, without their suites: lines of several JVMs are mixed."""
    found = []
    for test in filter(None, map(DURATION.match, text.splitlines())):
        parts = re.findall(r"(\d+) ([a-z]+?)s?(?:,|$)", test["time"])
        found.append((sum(int(n) * SECONDS[unit] for n, unit in parts), test["test"]))
    return [f"{took:7.1f} s  {test}" for took, test in sorted(found)[::-1][:SLOWEST]]


def main(report: str) -> int:
    path = Path(report)
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    suites = re.search(r"^Suites: completed \d+, aborted (\d+)$", text, re.MULTILINE)
    tests = re.search(
        r"^Tests: succeeded (\d+), failed (\d+), canceled (\d+), ignored (\d+), pending (\d+)$",
        text,
        re.MULTILINE,
    )
    if suites is None or tests is None:
        print(f"The Scala suites did not finish: no totals in {report}.", file=sys.stderr)
        return 1
    passed, failed, *left_out = map(int, tests.groups())
    aborted = int(suites.group(1))
    for line in re.findall(r"^.* \*\*\* (?:FAILED|ABORTED) \*\*\*.*$", text, re.MULTILINE):
        print(line)
    print(f"The {SLOWEST} slowest Scala tests:", *slowest(text), sep="\n")
    if aborted:
        print(f"Suites aborted, counted as one failure each: {aborted}")
    if any(left_out):
        print(f"Cancelled, ignored or pending: {sum(left_out)}")
    print(f"{passed} passed, {failed + aborted} failed", flush=True)
    if passed == 0:
        print("No Scala test has passed.", file=sys.stderr)
    return 1 if failed or aborted or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
