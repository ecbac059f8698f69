"""Spark Connect: the same functions through a local server, with the extension and without.

Each server takes some seconds to start, so it is for `make test-line` and `make test-all`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from amount import TEST_ALL

pytest.importorskip("grpc")
pytestmark = [
    pytest.mark.skipif(pyspark.__version__.startswith("3."), reason="needs the client of Spark 4"),
    pytest.mark.skipif(
        not (TEST_ALL or os.environ.get("SKEWEXT_TEST_LINE") == "1"), reason="takes long"
    ),
]

SCRIPTS = Path(__file__).parent / "connect"


def run(script: str) -> None:
    """In a process of its own: this one has a classic session."""
    # Of Spark's only how fast the JVM is: see conftest.
    environment = {
        k: v for k, v in os.environ.items() if k == "SPARK_SUBMIT_OPTS" or not k.startswith("SPARK")
    }
    done = subprocess.run(
        [sys.executable, str(SCRIPTS / script)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-5000:]
    assert done.stdout.splitlines()[-1:] == ["all as it should be"], done.stdout


def test_a_server_with_the_extension() -> None:
    run("with_extension.py")


def test_a_server_without() -> None:
    run("without_extension.py")
