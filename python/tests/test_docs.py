"""What the documents show is what happens: their Python blocks run, their links lead somewhere.

The blocks of a document run in order and share their names, as if typed into one session. A
`text` block right after a `python` block is what that prints; `...` in it stands for anything, and
the ids in Spark's plans may differ.
"""

from __future__ import annotations

import doctest
import io
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest
from plans import without_explanation
from pyspark.sql import SparkSession
from spark_lines import LINES
from stock import setting

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MAKE = re.compile(r"(?:`|run: |^)make ([a-z][a-z-]*)", re.MULTILINE)
_TARGETS = re.compile(r"^([a-z][a-z -]*):(?!=)", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")

# What a newcomer has, where the session of the tests differs.
_DEFAULTS = {
    "spark.sql.shuffle.partitions": 200,
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.autoBroadcastJoinThreshold": "10MB",
    "spark.skewext.enabled": "true",
    # The pages show plans of Spark 3.5, which has no such providers.
    "spark.sql.extendedExplainProviders": "",
    # Nor such checksums, which exchanges by column do not have.
    "spark.sql.shuffle.orderIndependentChecksum.enabled": "false",
    "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch": "false",
}


@dataclass
class Example:
    """A block of code, the line it begins at, and the output that the document claims."""

    code: str
    line: int
    output: str


def examples(text: str) -> Iterator[Example]:
    blocks = list(_BLOCK.finditer(text))
    for block, following in zip(blocks, [*blocks[1:], None]):
        if block.group(1) == "python":
            output = ""
            if following is not None and following.group(1) == "text":
                between = text[block.end() : following.start()]
                output = following.group(2) if not between.strip() else ""
            yield Example(block.group(2), text.count("\n", 0, block.start(2)), output)


def without_ids(text: str) -> str:
    return re.sub(r"plan_id=\d+", "plan_id=", re.sub(r"#\d+", "#", text))


def matches(claimed: str, printed: str) -> bool:
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    printed = without_ids(without_explanation(printed))
    return doctest.OutputChecker().check_output(without_ids(claimed), printed, flags)


@contextmanager
def left_as_found(spark: SparkSession) -> Iterator[None]:
    """Other tests use the session, too: without the tables, views and settings of a page."""

    def tables() -> set[tuple[str, bool]]:
        # Not of the catalog: what that lists, Spark cannot read without compiled code.
        return {(row.tableName, row.isTemporary) for row in spark.sql("SHOW TABLES").collect()}

    def settings() -> dict[str, str]:
        rows = spark.sql("SET").collect()
        return {row.key: row.value for row in rows if spark.conf.isModifiable(row.key)}

    tables_before, settings_before = tables(), settings()
    try:
        yield
    finally:
        for name, is_view in tables() - tables_before:
            spark.sql(f"DROP {'VIEW' if is_view else 'TABLE'} {name}")
        for key, value in settings().items():
            if key not in settings_before:
                spark.conf.unset(key)
            elif value != settings_before[key]:
                spark.conf.set(key, settings_before[key])


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_examples_print_what_the_document_says(spark: SparkSession, document: Path) -> None:
    if document.name == "tools.md" and not os.environ.get("SKEWEXT_TEST_TOOLS"):
        pytest.skip("make test-tools has the tools of this page")
    names: dict[str, object] = {}
    with ExitStack() as settings:
        settings.enter_context(left_as_found(spark))
        for key, value in _DEFAULTS.items():
            settings.enter_context(setting(spark, key, value))
        for example in examples(document.read_text(encoding="utf-8")):
            # Lines of the document in tracebacks.
            code = compile("\n" * example.line + example.code, str(document), "exec")
            printed = io.StringIO()
            with redirect_stdout(printed):
                exec(code, names)
            if not matches(example.output, printed.getvalue()):
                pytest.fail(f"{document.name}:{example.line} prints\n{printed.getvalue()}", False)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_to_files(document: Path) -> None:
    links = _LINK.findall(document.read_text(encoding="utf-8"))
    local = [link for link in links if not link.startswith(("http:", "https:", "mailto:"))]
    assert [link for link in local if not (document.parent / link).exists()] == []


def test_commands_of_documents_and_workflows_are_targets() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "bench").glob("*.md"), *DOCUMENTS]
    texts = [path.read_text(encoding="utf-8") for path in [*pages, *WORKFLOWS]]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = {name for text in texts for name in _MAKE.findall(text)}
    assert named - set(" ".join(_TARGETS.findall(makefile)).split()) == set()


def test_workflows_test_all_lines_of_spark() -> None:
    for path in WORKFLOWS:
        workflow = path.read_text(encoding="utf-8")
        tested = re.findall(r'spark: "([\d.]+)"', workflow)
        for listed in re.findall(r"spark: \[(.*)\]", workflow):
            tested += re.findall(r"[\d.]+", listed)
        assert not tested or set(tested) == set(LINES), path.name


@pytest.mark.parametrize("word", ["maxBroadcastBytes", "maxRereadFactor", "disable", "uninstall"])
def test_the_search_of_the_site_finds_last_words(word: str) -> None:
    config = (ROOT / "build-tools" / "site" / "mkdocs.yml").read_text(encoding="utf-8")
    separator = re.search(r"separator: '(.*)'", config)
    assert separator is not None
    pages = " ".join(path.read_text(encoding="utf-8") for path in DOCUMENTS[1:])
    assert word.lower() in {each.strip("`").lower() for each in re.split(separator[1], pages)}


def test_security_supports_the_last_release() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    release = re.search(r"^## \[(\d+\.\d+)\.\d+\]", changelog, re.MULTILINE)
    assert release is not None
    assert f"| {release[1]}.x | yes |" in (ROOT / "SECURITY.md").read_text(encoding="utf-8")
