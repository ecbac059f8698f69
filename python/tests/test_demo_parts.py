"""Parts of the demo that need no Spark session: data, options, terminal, picture."""

from __future__ import annotations

import time
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import duckdb
import pytest

import demo
from demo import console, data, options
from demo.compare import interleaved
from demo.inputs import CUSTOMER, DUPLICATES, INPUTS, KEY, VARIANTS, input_file
from demo.options import DemoError
from demo.picture import MOST_COMBINATIONS, Bars, Combination, draw
from demo.plans import PlanShape

TINY = 0.01


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return data.make_data(tmp_path_factory.mktemp("cache"), TINY, 2)


def test_data_has_the_six_inputs_of_every_variant(made: Path) -> None:
    for variant in VARIANTS:
        assert all(input_file(made, variant, source).is_file() for source in INPUTS)
    # Nothing of the making is left over.
    assert [path.name for path in made.parent.iterdir()] == [made.name]


def test_customer_variant_has_one_row_per_customer_and_one_without(made: Path) -> None:
    for one in data.facts(made, CUSTOMER):
        assert one.most_rows == 1
        assert one.rows == one.customers + one.null_keys
        assert one.null_keys <= 1
        assert one.customers > 0
    assert sum(one.null_keys for one in data.facts(made, CUSTOMER)) > 0


def test_duplicates_variant_bounds_customers_but_not_null_keys(made: Path) -> None:
    facts = data.facts(made, DUPLICATES)
    assert [one.most_rows for one in facts] == [2] * len(INPUTS)
    assert facts[0].null_keys > 2
    per_customer = data.facts(made, CUSTOMER)
    assert [one.customers for one in facts] == [one.customers for one in per_customer]


def test_column_names_are_unique_across_the_inputs(made: Path) -> None:
    for variant in VARIANTS:
        names = [
            row[0]
            for source in INPUTS
            for row in duckdb.sql(
                f"DESCRIBE SELECT * FROM '{input_file(made, variant, source)}'"
            ).fetchall()
            if row[0] != KEY
        ]
        assert len(names) == len(set(names))


def test_data_is_made_once(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "_connect", lambda *_: pytest.fail("made again"))
    assert data.make_data(made.parent, TINY, 2) == made


def test_interrupted_making_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(data, "_write", interrupt)
    with pytest.raises(KeyboardInterrupt):
        data.make_data(tmp_path, TINY, 2)
    assert list(tmp_path.iterdir()) == []


def test_duckdb_without_the_generator_is_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Without:
        def execute(self, query: str) -> None:
            if query.startswith("LOAD"):
                raise duckdb.Error("Extension tpcds not found")

    with pytest.raises(DemoError, match=r"pip install duckdb==1\.1\.3"):
        data._load_tpcds(Without())  # type: ignore[arg-type]

    load = data._load_tpcds
    monkeypatch.setattr(data, "_load_tpcds", lambda _: load(Without()))  # type: ignore[arg-type]
    places = ["--cache-dir", str(tmp_path / "cache"), "--output", str(tmp_path / "out")]
    assert demo.main([*places, "--scale-factor", str(TINY)]) == 2
    assert "pip install duckdb==1.1.3" in capsys.readouterr().err


def test_missing_modules_are_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = {"duckdb", "matplotlib"}
    monkeypatch.setattr(options, "find_spec", lambda name: name not in gone or None)
    assert demo.main([]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == (
        "demo: duckdb and matplotlib missing; "
        "install with: pip install 'duckdb==1.1.3' 'matplotlib'\n"
    )


def test_missing_java_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(options, "shutil", SimpleNamespace(which=lambda _: None))
    assert demo.main([]) == 2
    assert "Java" in capsys.readouterr().err


def test_cache_is_outside_the_project_unless_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert options.parse([]).cache_dir == tmp_path / "pyspark-skewext" / "demo"
    assert options.parse(["--cache-dir", "here"]).cache_dir == Path("here")


def test_unwritable_output_is_said_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    argv = ["--cache-dir", str(tmp_path), "--output", str(tmp_path / "file" / "out")]
    assert demo.main(argv) == 2
    assert f"cannot write to {tmp_path / 'file'}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "argv", [["--runs", "0"], ["--scale-factor", "-1"], ["--variant", "x"], ["--duplicates", "a"]]
)
def test_wrong_options_are_refused(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        demo.main(argv)
    assert ended.value.code == 2
    assert argv[0] in capsys.readouterr().err


def test_table_aligns_numbers_to_the_right(capsys: pytest.CaptureFixture[str]) -> None:
    console.table(["what", "n"], [["a", 1234], ["bcdefg", None], ["c", Decimal("0.5")]])
    assert capsys.readouterr().out.splitlines() == [
        "  what        n",
        "  ------  -----",
        "  a       1,234",
        "  bcdefg      -",
        "  c        0.50",
    ]


def test_step_shows_life_and_failure(capsys: pytest.CaptureFixture[str]) -> None:
    with console.step("Waiting", every=0.02):
        time.sleep(0.2)
    with pytest.raises(ValueError, match="on purpose"), console.step("Breaking"):
        raise ValueError("on purpose")
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("  Waiting ....")
    assert "done in" in first
    assert second.startswith("  Breaking ... failed after")


def test_runs_take_turns() -> None:
    order: list[str] = []

    def leg(name: str) -> float:
        order.append(name)
        return float(len(order))

    times = interleaved({"a": lambda: leg("a"), "b": lambda: leg("b")}, 3, lambda _: None)
    assert order == ["a", "b", "b", "a", "a", "b"]
    assert (times["a"].median, times["a"].best) == (4.0, 1.0)
    assert times["b"].seconds == [2.0, 3.0, 6.0]


def test_only_one_operator_counts_as_ours() -> None:
    assert PlanShape(6, 0, {"MultiFullJoin": 1}).is_ours
    assert not PlanShape(6, 0, {"MultiFullJoin": 1, "SortMergeJoin": 1}).is_ours
    assert not PlanShape(10, 10, {"SortMergeJoin": 5}).is_ours
    assert PlanShape(10, 10, {"SortMergeJoin": 5}).describe_joins() == "5 x SortMergeJoin"


@pytest.mark.parametrize("count", [1, MOST_COMBINATIONS + 3])
def test_picture_is_drawn_for_few_and_many_combinations(tmp_path: Path, count: int) -> None:
    places = [
        tuple(place for place in range(len(INPUTS)) if number >> place & 1)
        for number in range(1, count + 1)
    ]
    file = tmp_path / "new" / "picture.png"
    draw(file, [Combination(one, 10) for one in places], [Bars("one", 2.0, 1.0)], "a note")
    assert file.read_bytes().startswith(b"\x89PNG")
