"""Where the jar of the extension is."""

from __future__ import annotations

import os
from pathlib import Path

from pyspark_skewext._errors import runtime_error
from pyspark_skewext._version import __version__

#: Environment variable that names another jar than the one inside the package.
JAR_VARIABLE = "SKEWEXT_JAR"

JAR_DIRECTORY = Path(__file__).resolve().parent / "jars"


def jar_path() -> str:
    """Path of the jar that holds the Spark extension.

    The wheel carries the jar; the environment variable ``SKEWEXT_JAR`` overrides it.

    Returns
    -------
    str
        Absolute path of an existing file.

    Raises
    ------
    PySparkRuntimeError
        If there is no such file (a plain ``RuntimeError`` where PySpark is not installed).

    Examples
    --------
    >>> skewext.jar_path().endswith(".jar")
    True
    """
    override = os.environ.get(JAR_VARIABLE)
    if override:
        if not Path(override).is_file():
            raise runtime_error(
                f"The environment variable {JAR_VARIABLE} names {override!r}, which is not a file."
            )
        return str(Path(override).absolute())
    found = sorted(JAR_DIRECTORY.glob("skewext-spark*.jar"))
    ours = [jar for jar in found if jar.stem.endswith(f"-{__version__}")]
    if ours:
        return str(ours[0])
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
