"""Print `N passed, N failed` of a ScalaTest run; fail where the run failed or did not end.

It reads the text that ScalaTest's file reporter leaves. The JUnit reports of sbt are not used:
they show a cancelled test as one that passed, and nothing of a test JVM that died.
"""

import re
import sys
from pathlib import Path


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
        print(f"The Scala suites did not come to an end: no totals in {report}.", file=sys.stderr)
        return 1
    passed, failed, *left_out = map(int, tests.groups())
    aborted = int(suites.group(1))
    for line in re.findall(r"^.* \*\*\* (?:FAILED|ABORTED) \*\*\*.*$", text, re.MULTILINE):
        print(line)
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
