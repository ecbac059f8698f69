"""The gain of joins that `query_report` predicts from event logs, beside the measured one.

    bench/gains.py                     five jobs, three rounds
    bench/gains.py --rows 250000       half of the usual tables

Each job runs without and with the extension, in a session each, which take turns. A run with the
median of the task times counts. The report on it without the extension gives the prediction.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from harness import gains
from harness.alone import alone
from harness.measure import progress
from harness.pool import Pool
from harness.sessions import SessionSpec
from harness.worker import Json

CACHE = Path(__file__).resolve().parents[1] / ".cache" / "bench"
WAYS = {"stock": False, "ours": True}
_HEADER = ("job", "stock", "predicted", "measured", "longest task", "predicted", "measured")


def main(arguments: list[str]) -> int:
    """Run the jobs and print the table."""
    parser = argparse.ArgumentParser(prog="bench/gains.py", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--rows", type=int, default=500_000, help="rows of a table (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds after the warm-up (3)")
    parser.add_argument("--cores", type=int, default=2, help="cores for Spark (2)")
    parser.add_argument("--heap", default="2g", help="heap of a session (%(default)s)")
    parser.add_argument("--reports", action="store_true", help="also print the reports")
    options = parser.parse_args(arguments)
    data, logs = CACHE / "data" / f"gains-{options.rows}", CACHE / "event-logs"
    with alone(CACHE) as is_alone:
        if not is_alone:
            return 2
        gains.generate(data, options.rows)
        logs.mkdir(exist_ok=True)
        conf = {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": logs.as_uri(),
            "spark.eventLog.rolling.enabled": "false",
            "spark.eventLog.compress": "false",
        }
        with Pool(SessionSpec(CACHE, options.cores, options.heap, conf), 600) as pool:
            _print(_HEADER)
            _print(("---", *["---:"] * 6))
            for job in gains.JOBS:
                _print(_measured(pool, job, data, options))
    return 0


def _print(row: Sequence[str]) -> None:
    print(f"| {' | '.join(row)} |", flush=True)


def _measured(
    pool: Pool, job: gains.Job, data: Path, options: argparse.Namespace
) -> tuple[str, ...]:
    numbers: dict[str, list[int]] = {way: [] for way in WAYS}
    for _ in range(options.rounds + 1):
        for way, enabled in WAYS.items():
            numbers[way].append(pool.ask(way, gains.run, job, data, enabled))
    found = {way: _median(pool, way, numbers[way][1:]) for way in WAYS}
    stock, ours = found["stock"], found["ours"]
    if options.reports:
        progress(f"\n{stock['text']}\n\n{ours['text']}\n")
    shown = [
        stock["tasks"],
        stock["tasks"] - stock["saved"],
        ours["tasks"],
        stock["longest"],
        stock["predicted_longest"],
        ours["longest"],
    ]
    return (job.name, *(f"{each:.1f}" for each in shown))


def _median(pool: Pool, way: str, numbers: list[int]) -> Json:
    log = pool.ask(way, gains.log_of_session)
    found = [pool.ask(way, gains.figures, log, number) for number in numbers]
    middle: Json = sorted(found, key=lambda each: each["tasks"])[len(found) // 2]
    return middle


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
