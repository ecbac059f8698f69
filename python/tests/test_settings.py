"""What configure() makes of the settings that are there, without starting Spark."""

from __future__ import annotations

import os
import shlex
import zipfile
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkTypeError, PySparkValueError
from pyspark.sql import SparkSession

import pyspark_skewext as skewext
from pyspark_skewext import session
from pyspark_skewext._submit import SUBMIT_ARGS, SubmitArguments, default_settings

EXTENSION = "io.github.skewext.SkewExtensions"
JARS = "spark.jars"
EXTENSIONS = "spark.sql.extensions"
PROVIDER = "io.github.skewext.JoinExplainProvider"
PROVIDERS = "spark.sql.extendedExplainProviders"


@pytest.fixture
def jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    path = tmp_path / "skewext.jar"
    path.touch()
    monkeypatch.setenv("SKEWEXT_JAR", str(path))
    return str(path)


@pytest.fixture(autouse=True)
def conf_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "conf"
    directory.mkdir()
    monkeypatch.setenv("SPARK_CONF_DIR", str(directory))
    # Both, so that whatever a test sets is undone.
    monkeypatch.setenv(SUBMIT_ARGS, "")
    monkeypatch.delenv(SUBMIT_ARGS)
    return directory


def fresh(**options: str) -> dict[str, Any]:
    """Options after configure() where no JVM runs; underscores stand for dots."""
    given: dict[str, Any] = {key.replace("_", "."): value for key, value in options.items()}
    session._configure_fresh(given)
    once = dict(given), os.environ.get(SUBMIT_ARGS)
    session._configure_fresh(given)
    assert (given, os.environ.get(SUBMIT_ARGS)) == once, "a second call changes nothing"
    return given


def test_nothing_set(jar: str) -> None:
    assert fresh() == {JARS: jar, EXTENSIONS: EXTENSION}
    assert SUBMIT_ARGS not in os.environ


@pytest.fixture
def jar_of_spark_4(jar: str) -> str:
    with zipfile.ZipFile(jar, "w") as file:
        file.writestr(f"{PROVIDER.replace('.', '/')}.class", b"")
    return jar


def test_the_provider_of_explain_is_set_where_the_jar_has_it(
    jar_of_spark_4: str, conf_dir: Path
) -> None:
    assert fresh()[PROVIDERS] == PROVIDER
    assert fresh(spark_sql_extendedExplainProviders="my.P")[PROVIDERS] == f"my.P,{PROVIDER}"
    (conf_dir / "spark-defaults.conf").write_text(f"{PROVIDERS} d.P\n")
    assert fresh()[PROVIDERS] == f"d.P,{PROVIDER}"
    # A jar that cannot be looked into may be one without the class, where every query would fail.
    assert PROVIDERS not in fresh(spark_jars="hdfs://host/libs/skewext.jar")


def test_the_provider_of_explain_with_submit_arguments(
    jar_of_spark_4: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        SUBMIT_ARGS, f"--jars /s/s.jar --conf {PROVIDERS}=s.P --conf spark.x=y pyspark-shell"
    )
    assert fresh()[PROVIDERS] == f"s.P,{PROVIDER}"
    monkeypatch.setenv(SUBMIT_ARGS, "--jars hdfs://host/libs/skewext.jar pyspark-shell")
    assert PROVIDERS not in fresh()


def test_builder_settings_are_kept(jar: str) -> None:
    options = fresh(spark_jars="/x/a.jar, /x/b.jar", spark_sql_extensions="some.Ext")
    assert options[JARS] == f"/x/a.jar,/x/b.jar,{jar}"
    assert options[EXTENSIONS] == f"some.Ext,{EXTENSION}"


def test_existing_settings_are_not_repeated(jar: str) -> None:
    options = fresh(
        spark_jars="hdfs://host/libs/skewext.jar,/x/a.jar",
        spark_sql_extensions=f"{EXTENSION},some.Ext",
    )
    assert options[JARS] == "hdfs://host/libs/skewext.jar,/x/a.jar"
    assert options[EXTENSIONS] == f"{EXTENSION},some.Ext"


OLD = "skewext-spark3.5_2.12-0.1.0.jar"


def test_another_skewext_jar_is_replaced(
    jar: str, conf_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The JVM would load the classes of the first jar."""
    with pytest.warns(UserWarning, match=rf"names /x/{OLD}, another .* SKEWEXT_JAR") as told:
        assert fresh(spark_jars=f"/x/{OLD},/x/a.jar")[JARS] == f"/x/a.jar,{jar}"
    assert len(told) == 1, "a second call replaces nothing"
    assert told[0].filename.endswith("test_settings.py")
    # Also a jar for another line of Spark, beside that of the package.
    line = "hdfs://host/skewext-spark4.2_2.13-0.4.0.jar"
    with pytest.warns(UserWarning, match=line):
        assert fresh(spark_jars=f"{jar},{line}")[JARS] == jar
    (conf_dir / "spark-defaults.conf").write_text(f"spark.jars /d/{OLD},/d/d.jar\n")
    with pytest.warns(UserWarning, match=f"/d/{OLD}"):
        assert fresh()[JARS] == f"/d/d.jar,{jar}"
    monkeypatch.setenv(SUBMIT_ARGS, f"--jars /s/{OLD} --conf spark.jars=/c/c.jar pyspark-shell")
    with pytest.warns(UserWarning, match=f"/s/{OLD}"):
        assert JARS not in fresh()
    assert shlex.split(os.environ[SUBMIT_ARGS])[:2] == ["--jars", jar]


def test_defaults_file_is_kept(jar: str, conf_dir: Path) -> None:
    (conf_dir / "spark-defaults.conf").write_text(
        "# comment\nspark.jars   /d/d.jar\nspark.sql.extensions = d.Ext\nspark.x=y\n"
    )
    assert fresh() == {JARS: f"/d/d.jar,{jar}", EXTENSIONS: f"d.Ext,{EXTENSION}"}
    # As in Spark the builder goes before the file.
    assert fresh(spark_jars="/b.jar")[JARS] == f"/b.jar,{jar}"


def test_submit_arguments_are_kept(jar: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        SUBMIT_ARGS,
        "--master 'local[2]' --jars /s/s.jar --conf spark.sql.extensions=s.Ext "
        "--conf 'spark.x=a b' --verbose pyspark-shell",
    )
    options = fresh()
    assert options == {EXTENSIONS: f"s.Ext,{EXTENSION}"}
    assert shlex.split(os.environ[SUBMIT_ARGS]) == [
        "--jars", f"/s/s.jar,{jar}", "--master", "local[2]", "--conf", "spark.sql.extensions=s.Ext",
        "--conf", "spark.x=a b", "--verbose", "pyspark-shell",
    ]  # fmt: skip


def test_jars_in_submit_arguments_and_on_the_builder(
    jar: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SUBMIT_ARGS, "--jars=/s/s.jar pyspark-shell")
    assert fresh(spark_jars="/b.jar")[JARS] == f"/b.jar,{jar}"
    assert os.environ[SUBMIT_ARGS] == f"--jars /s/s.jar,{jar} pyspark-shell"


def test_jars_as_a_setting_in_submit_arguments(jar: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SUBMIT_ARGS, "--conf spark.jars=/s/s.jar pyspark-shell")
    assert JARS not in fresh()
    assert os.environ[SUBMIT_ARGS].startswith(f"--jars /s/s.jar,{jar} ")


def test_packages_are_not_lost(jar: str, conf_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # spark-submit adds what it fetched to its own spark.jars, which a builder would replace.
    (conf_dir / "spark-defaults.conf").write_text("spark.jars /d/d.jar\n")
    assert JARS not in fresh(spark_jars_packages="g:a:1")
    assert os.environ[SUBMIT_ARGS] == f"--jars /d/d.jar,{jar} pyspark-shell"
    monkeypatch.setenv(SUBMIT_ARGS, "--packages g:a:1 pyspark-shell")
    assert JARS not in fresh()
    assert os.environ[SUBMIT_ARGS] == f"--jars /d/d.jar,{jar} --packages g:a:1 pyspark-shell"


def test_properties_file_of_submit_arguments(
    jar: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "my.conf"
    file.write_text("spark.jars=/p/\\\n   p.jar\n")
    monkeypatch.setenv(SUBMIT_ARGS, f"--properties-file {file} pyspark-shell")
    assert fresh()[JARS] == f"/p/p.jar,{jar}"


def test_properties_file_beside_the_defaults_file(
    jar: str, conf_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (conf_dir / "spark-defaults.conf").write_text(
        "spark.jars /d/d.jar\nspark.sql.extensions d.Ext\n"
    )
    file = tmp_path / "my.conf"
    file.write_text("spark.jars /p/p.jar\n")
    arguments = f"--properties-file {file} --load-spark-defaults --conf spark.x=y pyspark-shell"
    monkeypatch.setenv(SUBMIT_ARGS, arguments)
    # As in Spark, the file of the arguments goes before the other one.
    assert fresh() == {JARS: f"/p/p.jar,{jar}", EXTENSIONS: f"d.Ext,{EXTENSION}"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("# a b\n! c d\n\n", {}),
        ("k v", {"k": "v"}),
        ("  k\tv w  ", {"k": "v w"}),
        ("k=v=w", {"k": "v=w"}),
        ("k: v", {"k": "v"}),
        ("k", {}),
    ],
)
def test_syntax_of_the_defaults_file(tmp_path: Path, text: str, expected: Any) -> None:
    file = tmp_path / "x.conf"
    file.write_text(text)
    assert default_settings(str(file)) == expected


def test_missing_defaults_file() -> None:
    assert default_settings() == {}


@pytest.mark.parametrize(
    ("text", "jars"),
    [
        ("pyspark-shell", None),
        ("", None),
        ("--jars a --jars b pyspark-shell", "b"),
        ("--supervise --jars a pyspark-shell", "a"),
        ("--load-spark-defaults --jars a pyspark-shell", "a"),
        ("pyspark-shell --jars a", None),
        ("-c spark.jars=a pyspark-shell", "a"),
        ("--conf=spark.jars=a pyspark-shell", "a"),
        ("--jars", ""),
    ],
)
def test_submit_arguments(monkeypatch: pytest.MonkeyPatch, text: str, jars: str | None) -> None:
    monkeypatch.setenv(SUBMIT_ARGS, text)
    assert SubmitArguments.from_environment().conf.get(JARS) == jars


def test_connect_builder_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    builder = SparkSession.Builder()
    builder._options["spark.remote"] = "sc://host"
    with pytest.raises(PySparkValueError, match="Spark Connect"):
        skewext.configure(builder)
    monkeypatch.setenv("SPARK_REMOTE", "sc://host")
    with pytest.raises(PySparkValueError, match="Spark Connect"):
        skewext.configure(SparkSession.Builder())


def test_not_a_builder() -> None:
    wrong: Any = "spark"
    with pytest.raises(PySparkTypeError, match=r"Expected a SparkSession.Builder, not str"):
        skewext.configure(wrong)


def test_names_of_the_public_module() -> None:
    assert all(hasattr(skewext, name) for name in skewext.__all__)
    root = Path(__file__).parents[2]
    assert skewext.__version__ == (root / "version.txt").read_text().strip()
