"""Single tasks of large jobs: one writes very many partitions, one reads very many blocks.

    bench/tasks.py                     all shapes
    bench/tasks.py 'map-128*'          some; patterns
    bench/tasks.py --ways stock,ours   Spark's exchange and join, and ours by column

A map task writes 128 MB or 1 GB of values into 2,000 or 8,000 partitions. A reduce task joins
10,000 blocks of 5 to 100 KB with one small block, all from the disk of one process, or half of them
from another executor. There are two ways of the extension: columns, and our join above Spark's
exchange. Each way has a process of its own, which runs the task once before it counts. The
processes take turns.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import asdict
from fnmatch import fnmatch
from pathlib import Path
from statistics import median

import summary
from harness import blocks
from harness.alone import alone
from harness.measure import progress
from harness.report import as_text
from harness.task_report import rows
from harness.tasks import MB, WAYS, Found, Shape, Trial, run
from harness.ways import answer, in_a_process

ROOT = Path(__file__).resolve().parents[1]
SHAPES = tuple(
    Shape(f"map-{megabytes}-{partitions}-{columns}", megabytes * MB, columns, partitions)
    for megabytes in (128, 1024)
    for partitions in (2000, 8000)
    for columns in (2, 5, 16)
) + tuple(
    Shape(f"reduce-{kilobytes}-{place}", kilobytes * 1024, 5, 1, 10_000, place == "network")
    for kilobytes in (5, 25, 100)
    for place in ("disk", "network")
)


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    names = ", ".join(shape.name for shape in SHAPES)
    parser = argparse.ArgumentParser(
        prog="bench/tasks.py",
        description=__doc__,
        epilog=f"shapes, the last number of a map task is that of its columns: {names}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("shapes", nargs="*", metavar="SHAPE", help="names or patterns; none: all")
    add("--ways", default=",".join(WAYS), help="of %(default)s")
    add("--turns", type=int, default=2, help="processes of each way (2)")
    add("--rounds", type=int, default=3, help="counted tasks of a process (3)")
    add("--share", type=float, default=1, help="of the bytes, partitions and blocks, to try it")
    add("--heap", default="2g", help="of the process, or of each executor (%(default)s)")
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="setting of ours")
    add("--timeout", type=float, default=1800, help="seconds until a process is given up (1800)")
    add("--cache", type=Path, default=ROOT / ".cache" / "bench", help="for the tables")
    add("--keep", action="store_true", help="write to bench/results/tasks.json")
    add("--way", help="this one, in this process; prints JSON")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """Run the shapes; 1 if a way of ours failed where Spark did not, or returned other rows."""
    options = parse(arguments)
    chosen = [shape for shape in SHAPES if _is_in(shape.name, options.shapes)]
    if options.way:
        (shape,) = chosen
        with tempfile.TemporaryDirectory(dir=options.cache) as home:
            answer(run(shape, _task(options, shape, Path(home))))
        return 0
    with alone(options.cache) as is_alone:
        return _run(chosen, arguments, options) if is_alone else 2


def _run(chosen: list[Shape], arguments: list[str], options: argparse.Namespace) -> int:
    worse = []
    for shape in chosen:
        size, files = _rows(shape, options.share), _blocks(shape, options.share)
        blocks.generate(_data(shape, options), shape.columns, size, files)
        runs: dict[str, list[Found]] = {way: [] for way in options.ways.split(",")}
        for turn in range(options.turns):
            for way in list(runs)[:: -1 if turn % 2 else 1]:
                more = [*_without_names(arguments, options), shape.name, "--way", way]
                found = in_a_process(__file__, *more, timeout=options.timeout)
                progress(f"{shape.name:24} {way:10} {found}")
                runs[way].append(found)
        ways = {way: _together(found) for way, found in runs.items()}
        worse += _problems(shape, ways)
        print(as_text(rows({shape.name: {"ways": ways}})), flush=True)
        if options.keep and options.share == 1:
            known = summary.read("tasks.json").get("shapes", {})
            about = {**asdict(shape), "heap": options.heap, "ways": ways}
            summary.keep("tasks.json", shapes={**known, shape.name: about})
    for problem in worse:
        print(f"PROBLEM {problem}")
    return int(bool(worse))


def _task(options: argparse.Namespace, shape: Shape, home: Path) -> Trial:
    own = dict(setting.split("=", 1) for setting in options.set)
    return Trial(
        way=options.way,
        data=_data(shape, options),
        home=home,
        heap=options.heap,
        rounds=options.rounds,
        partitions=max(1, round(shape.partitions * options.share)),
        conf=own if options.way != "stock" else {},
    )


def _is_in(name: str, patterns: list[str]) -> bool:
    return not patterns or any(fnmatch(name, pattern) for pattern in patterns)


def _without_names(arguments: list[str], options: argparse.Namespace) -> list[str]:
    return [each for each in arguments if each not in options.shapes]


def _blocks(shape: Shape, share: float) -> int:
    return max(1, round(shape.blocks * share))


def _rows(shape: Shape, share: float) -> int:
    """Of a file; the blocks of a share have their full size."""
    size = shape.bytes * (1 if shape.blocks else share)
    return max(1, round(size / blocks.width(shape.columns)))


def _data(shape: Shape, options: argparse.Namespace) -> Path:
    size, files = _rows(shape, options.share), _blocks(shape, options.share)
    folder: Path = options.cache.resolve() / "data" / f"tasks-{shape.columns}-{size}-{files}"
    return folder


def _together(runs: list[Found]) -> Found:
    """Medians of all counted tasks, and the facts of the last process."""
    last = runs[-1]
    failed = [run["outcome"] for run in runs if run["outcome"] != "done"]
    if failed:
        return {"failed": failed[0]}
    found = {name: value for name, value in last.items() if name not in ("outcome", "tasks")}
    tasks = [task for run in runs for task in run["tasks"]]
    return {**found, **{name: round(median(t[name] for t in tasks), 3) for name in tasks[0]}}


def _problems(shape: Shape, ways: dict[str, Found]) -> list[str]:
    done = {way: found for way, found in ways.items() if "failed" not in found}
    stock = done.get("stock")
    found = [
        f"{shape.name}: {way} failed: {found['failed']}"
        for way, found in ways.items()
        if "failed" in found and (stock or way == "stock")
    ]
    counts = {each["rows"] for each in done.values()}
    if len(counts) > 1:
        found.append(f"{shape.name}: different numbers of rows: {counts}")
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
