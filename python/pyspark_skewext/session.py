"""Getting the extension into a Spark session."""

from __future__ import annotations

import os
import warnings
import zipfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from pyspark_skewext import _connect, _jvm
from pyspark_skewext._errors import runtime_error, type_error, value_error
from pyspark_skewext._jar import jar_path
from pyspark_skewext._submit import SUBMIT_ARGS, SubmitArguments, default_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JARS = "spark.jars"
PACKAGES = "spark.jars.packages"
EXTENSIONS = "spark.sql.extensions"
EXPLAIN_PROVIDERS = "spark.sql.extendedExplainProviders"


def configure(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Make a session builder load the extension.

    Appends to ``spark.jars`` and ``spark.sql.extensions``, and on Spark 4 to
    ``spark.sql.extendedExplainProviders``, so that Spark's own EXPLAIN shows the joins. What is
    set there already stays, whether on the builder, by spark-submit, in ``PYSPARK_SUBMIT_ARGS``
    or in ``spark-defaults.conf``. Call it after the builder's other settings; calling it again
    changes nothing.

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
        session starts.

    Raises
    ------
    PySparkRuntimeError
        If the jar is missing, or is not of this package's version.
    PySparkValueError
        If the builder is one for a Spark Connect server that runs already, or of Spark 3.5. One for
        ``.remote("local[2]")``, whose server PySpark starts, is configured.

    Notes
    -----
    Jars given in ``PYSPARK_SUBMIT_ARGS`` or fetched for ``spark.jars.packages`` would be lost if
    the builder set ``spark.jars``. In these cases the jar is added to ``PYSPARK_SUBMIT_ARGS`` of
    this process instead.

    Examples
    --------
    >>> from pyspark.sql import SparkSession
    >>> builder = skewext.configure(SparkSession.builder.appName("example"))
    >>> skewext.is_enabled(builder.getOrCreate())
    True
    """
    from pyspark import SparkContext

    options = getattr(builder, "_options", None)
    if _jvm.is_connect(builder) or (isinstance(options, dict) and _is_remote(options)):
        raise value_error(
            "This builder makes a Spark Connect session, where extensions are loaded by the "
            "server: start the server with the skewext jar and its spark.sql.extensions."
        )
    if not isinstance(options, dict):
        raise type_error(f"Expected a SparkSession.Builder, not {type(builder).__name__}.")
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


def _is_remote(options: dict[str, Any]) -> bool:
    """Tell whether the server runs by itself; a local one PySpark 4 starts, with the options."""
    remote = options.get("spark.remote", os.environ.get("SPARK_REMOTE"))
    return remote is not None and (_connect.is_old_client() or not str(remote).startswith("local"))


def _configure_fresh(options: dict[str, Any]) -> None:
    """Set options for a JVM that these and the submit arguments will start."""
    jar = jar_path()
    submit = SubmitArguments.from_environment()
    defaults = default_settings(submit.properties_file)

    def given(key: str) -> str:
        return _first(options.get(key), submit.get(key), defaults.get(key))

    options[EXTENSIONS] = _append(given(EXTENSIONS), _jvm.EXTENSION)
    packages = given(PACKAGES)
    submitted = submit.get(JARS)
    if submitted is not None or (packages and JARS not in options):
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
        options[EXPLAIN_PROVIDERS] = _append(given(EXPLAIN_PROVIDERS), _jvm.EXPLAIN_PROVIDER)


def _has_class(jar: str, name: str) -> bool:
    """Tell whether a jar has a class, also of what is no jar."""
    try:
        with zipfile.ZipFile(jar) as file:
            return f"{name.replace('.', '/')}.class" in file.namelist()
    except (OSError, zipfile.BadZipFile):
        return False


def _configure_running(jvm: Any, options: dict[str, Any]) -> None:
    """Set options for a JVM that runs: it knows what spark-submit was told."""
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

    Loads the jar into the driver and hands it to the executors. Rules for adaptive execution
    and for SQL can only be added when a session starts (see :func:`configure`), which a warning
    recalls. A session that has the extension is left as it is.

    Parameters
    ----------
    spark : SparkSession
        The running session.

    Warns
    -----
    UserWarning
        Says what is missing in a session registered late.

    Raises
    ------
    PySparkRuntimeError
        If the jar is missing, cannot be loaded into the running JVM, or does not fit.
    PySparkTypeError
        If `spark` is a Spark Connect session or no session at all.

    Examples
    --------
    >>> skewext.register(spark)  # nothing to do: this session has the extension
    """
    _jvm.check_session(spark)
    api = _jvm.facade_of(spark)
    late = api is None
    if late:
        api = _load_late(spark)
    _jvm.check_versions(spark._jvm, spark.version)
    if api.isExtensionLoaded(spark._jsparkSession):
        return
    if not late:
        _offer_to_executors(spark)
    api.register(spark._jsparkSession)
    warnings.warn(
        "skewext was registered in a running session: multi_join and multi_full_join work, but "
        "the adaptive rules (spreading rows with a null key over tasks) are missing; to have them, "
        f"start the session with pyspark_skewext.configure(builder) or with {EXTENSIONS}="
        f"{_jvm.EXTENSION}.",
        stacklevel=2,
    )


def _load_late(spark: SparkSession) -> Any:
    jar = jar_path()
    jvm: Any = spark._jvm
    _jvm.add_to_class_loader(jvm, jar)
    if _jvm.facade(jvm) is None:
        # Loaders of other platforms: what SQL's ADD JAR does.
        spark._jsparkSession.sessionState().resourceLoader().addJar(jar)
    else:
        spark._jsc.addJar(jar)
    api = _jvm.facade_of(spark)
    if api is None:
        raise runtime_error(
            f"The jar {jar} could not be loaded into the running JVM: start the session with "
            f"pyspark_skewext.configure(builder), or give the jar to spark-submit --jars."
        )
    return api


def _offer_to_executors(spark: SparkSession) -> None:
    """Hand the jar to the executors where only the driver has it."""
    jar = _jvm.loaded_from(spark._jvm)
    if jar is not None and PurePosixPath(jar).name not in str(spark._jsc.sc().listJars()):
        spark._jsc.addJar(jar)


def is_enabled(spark: SparkSession) -> bool:
    """Tell whether the extension is in the session and switched on.

    Spark only logs a warning when it cannot load an extension; this tells for sure.

    Parameters
    ----------
    spark : SparkSession
        The session to look at.

    Returns
    -------
    bool
        False if the jar is not loaded, if the session knows nothing of it, or if
        ``spark.skewext.enabled`` is false in it.

    Examples
    --------
    >>> skewext.is_enabled(spark)
    True
    >>> spark.conf.set("spark.skewext.enabled", False)
    >>> skewext.is_enabled(spark)
    False
    >>> spark.conf.unset("spark.skewext.enabled")
    """
    if _jvm.is_connect(spark):
        enabled = str(spark.conf.get("spark.skewext.enabled", "true")).lower()
        return enabled == "true" and _connect.has_extension(spark)
    _jvm.check_session(spark)
    api = _jvm.fitting_facade_of(spark)
    if api is None:
        return False
    session = spark._jsparkSession
    return bool(api.isOperatorAvailable(session)) and bool(api.isEnabled(session))


def _first(*values: str | None) -> str:
    return next((value for value in values if value is not None), "")


def _entries(value: str) -> list[str]:
    return [entry.strip() for entry in value.split(",") if entry.strip()]


def _append(value: str, entry: str) -> str:
    entries = _entries(value)
    return ",".join(entries if entry in entries else [*entries, entry])


def _append_jar(value: str, jar: str) -> str:
    """Append unless a jar of that name is there, in whatever directory or file system."""
    names = [PurePosixPath(entry).name for entry in _entries(value)]
    return value if Path(jar).name in names else _append(value, jar)
