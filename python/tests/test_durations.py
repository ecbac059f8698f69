"""test_seconds.py takes reports of all tests, and not those of `make test`."""

from __future__ import annotations

from pathlib import Path

import pytest
import test_seconds


@pytest.mark.parametrize(("ran", "code"), [(["slow", "slower", "quick"], 0), (["quick"], 1)])
def test_reports_without_slow_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ran: list[str], code: int
) -> None:
    for name in ("SUITES", "TESTS"):
        monkeypatch.setattr(test_seconds, name, tmp_path / name)
    known = "ASuite\tslow\t3\nASuite\tslower\t4\n"
    (tmp_path / "TESTS").write_text(known)
    (tmp_path / "test-reports").mkdir()
    # ScalaTest reports a test that is left out, too.
    cases = "".join(
        f'<testcase classname="x.ASuite" name="{name}" time="{2.0 + i}">'
        f"{'' if name in ran else '<skipped/>'}</testcase>"
        for i, name in enumerate(["slow", "slower", "quick"])
    )
    (tmp_path / "test-reports" / "a.xml").write_text(f"<testsuite>{cases}</testsuite>")
    assert test_seconds.main([str(tmp_path)]) == code
    assert ((tmp_path / "TESTS").read_text() == known) == (code == 1)
