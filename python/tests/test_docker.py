"""The image and its compose file match the tree; the workflow of a release builds the image."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path

import spark_lines
import yaml

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docker"
DOCKERFILE = (FOLDER / "Dockerfile").read_text(encoding="utf-8")
SERVICES = yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))["services"]


def copied() -> list[str]:
    sources = re.findall(r"^COPY (?!--from)(.*) \./$", DOCKERFILE, re.MULTILINE)
    return [word for line in sources for word in line.split()]


def test_copied_files_exist_and_are_not_ignored() -> None:
    ignored = (FOLDER / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    let_in = [line[1:] for line in ignored if line.startswith("!")]
    assert ignored[1] == "*"
    wheel, *others = sorted(copied(), key=lambda name: "WHEELS" not in name)
    assert wheel == "${WHEELS}/pyspark_skewext-*.whl"
    assert [name for name in others if not (ROOT / name).is_file()] == []
    assert [name for name in others if not any(fnmatch(name, each) for each in let_in)] == []
    assert {"target/release/*.whl", "python/dist/*.whl"} <= set(let_in)


def test_the_image_has_the_newest_spark_that_all_tests_run_on() -> None:
    tested = [line for line in spark_lines.LINES if not spark_lines.of(line, "fromPySpark")]
    newest = spark_lines.of(tested[-1], "spark")
    assert f"pyspark=={newest}\n" in (FOLDER / "requirements.txt").read_text(encoding="utf-8")


def test_ports_are_exposed_and_bound_to_this_machine() -> None:
    ports = [port for service in SERVICES.values() for port in service["ports"]]
    assert all(port.startswith("127.0.0.1:") for port in ports)
    exposed = re.search(r"^EXPOSE (.*)$", DOCKERFILE, re.MULTILINE)
    assert exposed
    assert sorted(port.split(":")[-1] for port in ports) == sorted(exposed[1].split())
    assert SERVICES["notebook"]["environment"]["SPARK_REMOTE"] == "sc://server:15002"
