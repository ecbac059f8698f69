"""The path of the jar."""

from __future__ import annotations

import os
import re
from pathlib import Path

from pyspark_skewext._errors import runtime_error, type_error
from pyspark_skewext._version import __version__

#: Environment variable that names another jar than those inside the package.
JAR_VARIABLE = "SKEWEXT_JAR"

#: Environment variable that names the line of Spark, where another Spark runs than PySpark's.
LINE_VARIABLE = "SKEWEXT_SPARK_LINE"

JAR_DIRECTORY = Path(__file__).resolve().parent / "jars"

_NAME = re.compile(rf"skewext-spark(\d+\.\d+)_[\d.]+-{re.escape(__version__)}\.jar")

#: A jar of any version and line.
_ANY_NAME = re.compile(r"skewext-spark\d+\.\d+_[\d.]+-.+\.jar")


def is_named_skewext(name: str) -> bool:
    """Tell whether a file has the name of a jar of any version, for any line of Spark."""
    return _ANY_NAME.fullmatch(name) is not None


def jar_path(spark: str | None = None) -> str:
    """Path of the jar with the Spark extension.

    The wheel has a jar for each line of Spark. The environment variable ``SKEWEXT_JAR`` names
    another jar, for any line.

    Parameters
    ----------
    spark : str, optional
        The line of Spark, as ``"4.2"``, or a version of it. The default is the environment variable
        ``SKEWEXT_SPARK_LINE``, then the PySpark that is installed, then the Spark in
        ``SPARK_HOME``.

    Returns
    -------
    str
        Absolute path of an existing file.

    Raises
    ------
    PySparkRuntimeError
        If there is no such file (a plain ``RuntimeError`` without PySpark).
    PySparkTypeError
        If `spark` is not text (a plain ``TypeError`` without PySpark).

    Examples
    --------
    >>> skewext.jar_path().endswith(".jar")
    True
    """
    if not isinstance(spark, (str, type(None))):
        raise type_error(f"spark must be text such as '4.2', not {type(spark).__name__}.")
    override = os.environ.get(JAR_VARIABLE)
    if override:
        if not Path(override).is_file():
            raise runtime_error(
                f"The environment variable {JAR_VARIABLE} names {override!r}, which is not a file."
            )
        return str(Path(override).absolute())
    jars = _jars()
    lines = ", ".join(jars)
    version = spark or os.environ.get(LINE_VARIABLE) or _pyspark_version() or _home_version()
    if version is None:
        if len(jars) == 1:
            return str(next(iter(jars.values())))
        raise runtime_error(
            f"Without PySpark the line of Spark is not known: give it ({lines}) to "
            f"jar_path(), or in the environment variable {LINE_VARIABLE}."
        )
    line = ".".join(version.split(".")[:2])
    if line not in jars:
        raise runtime_error(
            f"pyspark_skewext {__version__} has no jar for Spark {version}; it has jars for these "
            f"lines of Spark: {lines}."
        )
    return str(jars[line])


def _jars() -> dict[str, Path]:
    """List the jars of this version by the line of Spark."""
    found = sorted(JAR_DIRECTORY.glob("skewext-spark*.jar"))
    ours = {match.group(1): jar for jar in found if (match := _NAME.fullmatch(jar.name))}
    if ours:
        return ours
    if found:
        raise runtime_error(
            f"pyspark_skewext {__version__} needs the jar of the same version, but "
            f"{JAR_DIRECTORY} has {', '.join(jar.name for jar in found)}; build the jar again or "
            f"reinstall pyspark-skewext."
        )
    raise runtime_error(
        f"The skewext jar is missing: {JAR_DIRECTORY} has no skewext-spark*.jar; reinstall "
        f"pyspark-skewext, or set the environment variable {JAR_VARIABLE} to the path of the jar."
    )


def _pyspark_version() -> str | None:
    try:
        from pyspark import __version__ as version
    except ImportError:
        return None
    return str(version)


def _home_version() -> str | None:
    """The version in the name of Spark's own jar."""
    home = os.environ.get("SPARK_HOME")
    for jar in Path(home).glob("jars/spark-core_*.jar") if home else ():
        return jar.stem.rpartition("-")[2]
    return None
