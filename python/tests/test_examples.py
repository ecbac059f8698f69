"""The notebooks under examples/: made of the scripts beside them, and they run."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "build-tools"))

import nbformat  # noqa: E402
import notebooks  # noqa: E402

SCRIPTS = notebooks.scripts()


#: The notebooks with pictures.
DRAWN = ("customer_profile", "hot_key", "point_in_time")


def sources(notebook: nbformat.NotebookNode) -> list[tuple[str, str]]:
    return [(cell.cell_type, cell.source) for cell in notebook.cells]


def pictures(notebook: nbformat.NotebookNode) -> int:
    outputs = [o for cell in notebook.cells for o in cell.get("outputs", [])]
    return sum("image/png" in o.get("data", {}) for o in outputs)


def test_there_are_examples() -> None:
    assert [script.stem for script in SCRIPTS] == [
        "connect",
        "customer_profile",
        "databricks_check",
        "hot_key",
        "point_in_time",
    ]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_the_notebook_matches_its_script(script: Path) -> None:
    notebook = nbformat.read(script.with_suffix(".ipynb"), as_version=4)
    assert sources(notebook) == sources(notebooks.from_script(script)), (
        "run build-tools/notebooks.py"
    )
    assert (pictures(notebook) > 0) == (script.stem in DRAWN)
    assert notebook.cells[1].execution_count == 1


# Each of them runs once, in one of the two ways: as the cells are the same, that tells of both.
@pytest.mark.slow("point_in_time")
@pytest.mark.parametrize("name", ["customer_profile", "point_in_time"])
def test_a_notebook_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    script = notebooks.EXAMPLES / f"{name}.py"
    kept = nbformat.read(script.with_suffix(".ipynb"), as_version=4)
    ran = notebooks.run(notebooks.from_script(script))
    assert pictures(ran) == pictures(kept)


@pytest.mark.slow
def test_a_script_runs_by_spark_submit() -> None:
    submit = Path(sys.executable).with_name("spark-submit")
    done = subprocess.run(
        [str(submit), "--master", "local[2]", str(notebooks.EXAMPLES / "hot_key.py")],
        env={**os.environ, "MPLBACKEND": "agg", "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    # What needs no other query comes first.
    split, technique = map(done.stdout.find, ("skew: split, ", "skew_join by salted"))
    assert 0 < split < technique


@pytest.mark.slow
def test_the_check_for_databricks(spark: SparkSession) -> None:
    script = notebooks.EXAMPLES / "databricks_check.py"
    found = runpy.run_path(str(script), init_globals={"spark": spark})["found"]
    assert len(found) == 13
    assert [line for line in found if line[1] != "yes"] == []
