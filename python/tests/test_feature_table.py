"""The table of features in docs/compatibility.md: counts of reports, of suites that exist."""

from __future__ import annotations

from pathlib import Path

from feature_table import BEGIN, END, FEATURES, PAGE, is_of, row, with_table

ROOT = Path(__file__).parents[2]


def report(file: Path, *cases: tuple[str, str]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    tests = "".join(f'<testcase classname="{of}" name="a">{kind}</testcase>' for of, kind in cases)
    time = "2026-11-26T00:43:20"
    file.write_text(f'<testsuites><testsuite timestamp="{time}">{tests}</testsuite></testsuites>')


def test_counts_of_reports(tmp_path: Path) -> None:
    ours = "io.github.skewext"
    report(
        tmp_path / "spark-4.2" / "test-reports" / "a.xml",
        (f"{ours}.skew.run.ASuite", ""),
        (f"{ours}.skew.BSuite", "<failure/>"),
        (f"{ours}.join.CSuite", "<skipped/>"),
        (f"{ours}.LayersSuite", ""),
    )
    report(
        tmp_path / "spark-4.2" / "pytest.xml",
        ("tests.test_skew", ""),
        ("tests.test_skew_join", ""),
        ("tests.test_asof", "<error/>"),
    )
    cells = dict(zip(["line", *FEATURES, "days"], row(tmp_path / "spark-4.2")))
    assert cells.pop("line") == "4.2" and cells.pop("days") == "2026-11-26"
    assert cells.pop("split") == "2, 1 failed" and cells.pop("as-of") == "0, 1 failed"
    assert set(cells.values()) == {"not run"}
    assert row(tmp_path / "none")[-1] == "none"


def test_every_part_of_a_feature_has_tests() -> None:
    names = {f"tests.{path.stem}" for path in (ROOT / "python" / "tests").glob("test_*.py")}
    for path in (ROOT / "scala" / "src" / "test").glob("scala*/io/github/**/*Suite.scala"):
        dotted = ".".join(path.with_suffix("").parts)
        names.add(dotted[dotted.index("io.github") :])
    for part in " ".join(FEATURES.values()).split():
        assert any(is_of(name, part) for name in names), part


def test_only_the_table_changes() -> None:
    page = PAGE.read_text(encoding="utf-8")
    written = with_table(page, "| new |\n")
    assert f"{BEGIN}| new |\n{END}" in written
    assert written.replace("| new |\n", page.split(BEGIN)[1].split(END)[0]) == page
