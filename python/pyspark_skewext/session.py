"""Loading the extension into a Spark session."""

from __future__ import annotations

import os
import warnings
import zipfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from pyspark_skewext import _jvm
from pyspark_skewext._engine import engine_of
from pyspark_skewext._engine.connect import is_remote
from pyspark_skewext._errors import type_error, value_error
from pyspark_skewext._jar import JAR_VARIABLE, is_named_skewext, jar_path
from pyspark_skewext._jvm import EXTENSIONS, JARS
from pyspark_skewext._submit import SUBMIT_ARGS, SubmitArguments, default_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGES = "spark.jars.packages"
EXPLAIN_PROVIDERS = "spark.sql.extendedExplainProviders"


def configure(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Make a session builder load the extension.

    It appends to ``spark.jars`` and ``spark.sql.extensions``, also to values from spark-submit,
    ``PYSPARK_SUBMIT_ARGS`` or ``spark-defaults.conf``. On Spark 4 it also appends to
    ``spark.sql.extendedExplainProviders``, so that Spark's own EXPLAIN shows the joins. Call it
    after the builder's other settings. A second call changes nothing.

    Parameters
    ----------
    builder : SparkSession.Builder
        As from ``SparkSession.builder``.

    Returns
    -------
    SparkSession.Builder
        The same builder.

    Warns
    -----
    UserWarning
        If a session without the extension is running: Spark reads both settings only when a
        session starts. Also if ``spark.jars`` names a skewext jar of another version or line of
        Spark, which the jar of this package replaces.

    Raises
    ------
    PySparkRuntimeError
        If the jar is missing, or has another version than this package.
    PySparkValueError
        If the builder connects to a running Spark Connect server, which loads extensions itself.
        With PySpark 4 a builder for ``.remote("local[2]")`` is fine: PySpark starts its server.

    Notes
    -----
    A ``spark.jars`` of the builder hides jars of ``PYSPARK_SUBMIT_ARGS`` and jars that Spark
    fetches for ``spark.jars.packages``. With either, the jar is added to ``PYSPARK_SUBMIT_ARGS`` of
    this process instead.

    Examples
    --------
    >>> from pyspark.sql import SparkSession
    >>> builder = skewext.configure(SparkSession.builder.appName("example"))
    >>> skewext.is_enabled(builder.getOrCreate())
    True
    """
    options = getattr(builder, "_options", None)
    if is_remote(builder, options):
        raise value_error(
            "This builder makes a Spark Connect session, where extensions are loaded by the "
            "server: start the server with the skewext jar and its spark.sql.extensions."
        )
    if not isinstance(options, dict):
        raise type_error(f"Expected a SparkSession.Builder, not {type(builder).__name__}.")
    # pyspark-client lacks it.
    from pyspark import SparkContext

    if SparkContext._jvm is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        # spark-submit has started the JVM, or an earlier session has.
        SparkContext._ensure_initialized()
        _configure_running(SparkContext._jvm, options)
        if _runs_without_extension():
            warnings.warn(
                "A Spark session is already running without skewext, and spark.jars and "
                "spark.sql.extensions are read only when a session starts: stop it before "
                "getOrCreate(), or call pyspark_skewext.register(spark) to have the joins "
                "without the adaptive rules.",
                stacklevel=2,
            )
        else:
            _explain_in_running(SparkContext._jvm, options)
    else:
        _configure_fresh(options)
    return builder


def _configure_fresh(options: dict[str, Any]) -> None:
    """Set options for a JVM that starts with them and with the submit arguments."""
    jar = jar_path()
    submit = SubmitArguments.from_environment()
    defaults = default_settings(submit.properties_file, submit.loads_defaults)

    def known(key: str) -> str:
        return _first(options.get(key), submit.conf.get(key), defaults.get(key))

    options[EXTENSIONS] = _append(known(EXTENSIONS), _jvm.EXTENSION)
    submitted = submit.conf.get(JARS)
    if submitted is not None or (known(PACKAGES) and JARS not in options):
        # The class path of the driver follows the submit arguments, not the builder.
        jars = _append_jar(_first(submitted, options.get(JARS), defaults.get(JARS)), jar)
        os.environ[SUBMIT_ARGS] = submit.with_jars(jars)
        if JARS in options:
            options[JARS] = _append_jar(options[JARS], jar)
    else:
        jars = options[JARS] = _append_jar(_first(options.get(JARS), defaults.get(JARS)), jar)
    # Where Spark does not find a provider, every query fails: only the classes of a jar that is
    # here are known.
    if jar in _entries(jars) and _has_class(jar, _jvm.EXPLAIN_PROVIDER):
        options[EXPLAIN_PROVIDERS] = _append(known(EXPLAIN_PROVIDERS), _jvm.EXPLAIN_PROVIDER)


def _has_class(jar: str, name: str) -> bool:
    """Tell whether a jar has a class. False for a file that is not a jar."""
    try:
        with zipfile.ZipFile(jar) as file:
            return f"{name.replace('.', '/')}.class" in file.namelist()
    except (OSError, zipfile.BadZipFile):
        return False


def _configure_running(jvm: Any, options: dict[str, Any]) -> None:
    """Set options for a running JVM, which has the settings of spark-submit."""
    conf = jvm.org.apache.spark.SparkConf(True)
    if _jvm.facade(jvm) is None:
        _jvm.add_to_class_loader(jvm, jar_path())
    api = _jvm.facade(jvm)
    jar = jar_path() if api is None else _jvm.loaded_from(jvm)
    if jar is not None:
        options[JARS] = _append_jar(_first(options.get(JARS), conf.get(JARS, "")), jar)
    if api is not None:
        _jvm.check_versions(jvm)
    extensions = _first(options.get(EXTENSIONS), conf.get(EXTENSIONS, ""))
    options[EXTENSIONS] = _append(extensions, _jvm.EXTENSION)


def _explain_in_running(jvm: Any, options: dict[str, Any]) -> None:
    """Set the provider of EXPLAIN where the JVM has the class."""
    if _jvm.has_class(jvm, _jvm.EXPLAIN_PROVIDER):
        conf = jvm.org.apache.spark.SparkConf(True)
        providers = _first(options.get(EXPLAIN_PROVIDERS), conf.get(EXPLAIN_PROVIDERS, ""))
        options[EXPLAIN_PROVIDERS] = _append(providers, _jvm.EXPLAIN_PROVIDER)


def _runs_without_extension() -> bool:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is None:
        return False
    session = SparkSession.getActiveSession() or SparkSession._instantiatedSession
    if session is None:
        # A context alone has its settings fixed as well.
        context: Any = SparkContext._active_spark_context
        return _jvm.EXTENSION not in _entries(context.getConf().get(EXTENSIONS, ""))
    api = _jvm.fitting_facade_of(session)
    return api is None or not api.isExtensionLoaded(session._jsparkSession)


def register(spark: SparkSession) -> None:
    """Offer the joins in a session that was started without the extension.

    It loads the jar into the driver and sends it to the executors. The joins that are called by
    name work. The table functions and the rules for SQL and adaptive execution need
    :func:`configure`, because Spark adds these only when a session starts.

    Parameters
    ----------
    spark : SparkSession
        The running session. With the extension, nothing changes.

    Warns
    -----
    UserWarning
        Names the parts that are missing in such a session.

    Raises
    ------
    PySparkRuntimeError
        If the jar is missing, or the JVM cannot load or use it.
    PySparkTypeError
        If `spark` is a Spark Connect session or not a session.

    Examples
    --------
    >>> skewext.register(spark)  # nothing to do: this session has the extension
    """
    engine_of(spark).register()


def is_enabled(spark: SparkSession) -> bool:
    """Return whether the extension is in the session and switched on.

    Parameters
    ----------
    spark : SparkSession
        The session.

    Returns
    -------
    bool
        False without the jar, without the extension, or if ``spark.skewext.enabled`` is false. A
        jar of another version counts, though the functions refuse it: :func:`doctor` names it.

    Examples
    --------
    >>> skewext.is_enabled(spark)
    True
    """
    return engine_of(spark).is_enabled()


def _first(*values: str | None) -> str:
    return next((value for value in values if value is not None), "")


def _entries(value: str) -> list[str]:
    return [entry.strip() for entry in value.split(",") if entry.strip()]


def _append(value: str, entry: str) -> str:
    entries = _entries(value)
    return ",".join(entries if entry in entries else [*entries, entry])


def _append_jar(value: str, jar: str) -> str:
    """Append the jar, unless the value has a jar of that name in any directory.

    A jar of another version or line of Spark gives way. The JVM would load classes of the first.
    """
    ours = Path(jar).name
    others = [
        entry
        for entry in _entries(value)
        if (name := PurePosixPath(entry).name) != ours and is_named_skewext(name)
    ]
    if others:
        warnings.warn(
            f"spark.jars names {', '.join(others)}, another skewext jar than that of this package: "
            f"{ours} replaces it. To use another jar, set {JAR_VARIABLE} to its path.",
            stacklevel=4,
        )
        value = ",".join(entry for entry in _entries(value) if entry not in others)
    names = [PurePosixPath(entry).name for entry in _entries(value)]
    return value if ours in names else _append(value, jar)
