"""Make the notebooks of examples/ from the scripts beside them, and run them.

    .venv/bin/python build-tools/notebooks.py

`examples/x.py` is the source: a script whose cells begin with `# %%`, which jupytext and most
editors know. `examples/x.ipynb` also has the output of the cells, for readers on the web. The
notebook about Spark Connect needs Spark 4, so run it with `.venv-4.2/bin/python`.
"""

import argparse
import sys
from pathlib import Path

import jupytext
import nbformat
import pyspark
from nbclient import NotebookClient

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def scripts() -> list[Path]:
    return sorted(EXAMPLES.glob("*.py"))


def from_script(script: Path) -> nbformat.NotebookNode:
    """The notebook without outputs. Ids of cells are their numbers, or each run made new ones."""
    notebook = jupytext.read(script)
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
        cell.metadata = {}
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return notebook


def run(notebook: nbformat.NotebookNode, timeout: int = 300) -> nbformat.NotebookNode:
    """Runs all cells; an error in one of them is raised. What is logged is left out."""
    client = NotebookClient(
        notebook, timeout=timeout, record_timing=False, resources={"metadata": {"path": EXAMPLES}}
    )
    client.execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.metadata = {}
            cell.outputs = [o for o in cell.outputs if o.get("name") != "stderr"]
    notebook.metadata["language_info"] = {"name": "python"}
    return notebook


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="scripts without .py; by default all that can run")
    names = parser.parse_args().names
    runnable = [
        s for s in scripts() if s.stem != "connect" or not pyspark.__version__.startswith("3")
    ]
    chosen = [EXAMPLES / f"{name}.py" for name in names] or runnable
    for script in chosen:
        print(f"Running {script.name}", file=sys.stderr)
        nbformat.write(run(from_script(script)), script.with_suffix(".ipynb"))


if __name__ == "__main__":
    main()
