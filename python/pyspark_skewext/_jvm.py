"""Access to the JVM: the facade there, late loading, versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_skewext._errors import runtime_error, type_error
from pyspark_skewext._version import __version__

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXTENSION = "io.github.skewext.SkewExtensions"

#: The settings that load it.
JARS = "spark.jars"
EXTENSIONS = "spark.sql.extensions"

#: Only the jars for Spark 4 have it.
EXPLAIN_PROVIDER = "io.github.skewext.JoinExplainProvider"


def is_connect(thing: object) -> bool:
    """Whether a session, builder or DataFrame is of Spark Connect, without its import of grpc."""
    return any(base.__module__.startswith("pyspark.sql.connect") for base in type(thing).__mro__)


def is_a(thing: object, name: str) -> bool:
    """Whether it is a DataFrame or Column; before Spark 4 those of Connect have no common base."""
    return any(
        base.__name__ == name and base.__module__.startswith("pyspark.sql.")
        for base in type(thing).__mro__
    )


def check_session(spark: SparkSession) -> None:
    """Refuse anything but a session with a JVM."""
    if not hasattr(spark, "_jsparkSession"):
        raise type_error(f"Expected a SparkSession, not {type(spark).__name__}.")


def facade(jvm: Any) -> Any:
    """Find `io.github.skewext.PythonApi` in the JVM; None without the jar."""
    found = jvm.io.github.skewext.PythonApi
    # py4j takes unknown names for packages.
    return None if type(found).__name__ == "JavaPackage" else found


def has_class(jvm: Any, name: str) -> bool:
    """Tell whether threads of the JVM like this one can load a class."""
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    return loader is not None and loader.getResource(name.replace(".", "/") + ".class") is not None


def facade_of(spark: SparkSession) -> Any:
    """Find the facade in the class loader of the session; None without it.

    SQL's ADD JAR extends only the class loader of its thread. Every Python thread has a JVM thread
    of its own, so we set that loader in the other threads.
    """
    jvm: Any = spark._jvm
    found = facade(jvm)
    if found is None:
        thread = jvm.java.lang.Thread.currentThread()
        before = thread.getContextClassLoader()
        thread.setContextClassLoader(spark._jsparkSession.sharedState().jarClassLoader())
        found = facade(jvm)
        if found is None:
            thread.setContextClassLoader(before)
    return found


def add_to_class_loader(jvm: Any, jar: str) -> None:
    """Add the jar to the class loader of spark-submit, if the driver has one.

    Unlike ADD JAR this reaches all threads, because they inherit this loader.
    """
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    if loader is None:
        return
    if loader.getClass().getName().startswith("org.apache.spark.util.") and any(
        method.getName() == "addURL" for method in loader.getClass().getMethods()
    ):
        loader.addURL(jvm.java.io.File(jar).toURI().toURL())


def loaded_from(jvm: Any) -> str | None:
    """The address of the jar that the driver has loaded.

    None for a jar on the system class path, such as a cluster's own folder of jars: we assume that
    executors have it too.
    """
    system = jvm.java.lang.ClassLoader.getSystemClassLoader()
    if system.getResource(EXTENSION.replace(".", "/") + ".class") is not None:
        return None
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    source = loader.loadClass(EXTENSION).getProtectionDomain().getCodeSource()
    return None if source is None else str(source.getLocation().toString())


def all_jars(jvm: Any) -> list[str]:
    """List the addresses of all jars of the extension that a thread like this one can see."""
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    name = EXTENSION.replace(".", "/") + ".class"
    found = loader.getResources(name)
    jars = set()
    while found.hasMoreElements():
        address = str(found.nextElement().toString())
        jars.add(address.removeprefix("jar:").split("!/")[0])
    return sorted(jars)


def build_of(jvm: Any) -> dict[str, Any]:
    """Read the version of the jar, and the line of Spark that it is built for."""
    build = jvm.io.github.skewext.internal.BuildInfo
    return {"version": str(build.version()), "spark_line": str(build.sparkLine())}


def check_versions(jvm: Any, spark_version: str | None = None) -> None:
    """Refuse a jar of another version, or one built for another line of Spark."""
    # The name is the same in jars of all versions.
    jar_version = str(jvm.io.github.skewext.internal.BuildInfo.version())
    if jar_version != __version__:
        raise runtime_error(
            f"The skewext jar in the JVM has version {jar_version} but pyspark_skewext has "
            f"version {__version__}: use the same version of both."
        )
    misfit = None if spark_version is None else other_line(jvm, spark_version)
    if misfit is not None:
        raise runtime_error(misfit)


def other_line(jvm: Any, spark_version: str) -> str | None:
    """A message if the jar was built for another line of Spark; None otherwise.

    Another call of such a jar may end py4j's thread, because Scala differs too.
    """
    line = str(jvm.io.github.skewext.internal.BuildInfo.sparkLine())
    if spark_version.startswith(f"{line}."):
        return None
    return (
        f"The skewext jar was built for Spark {line} but this is Spark {spark_version}: use "
        f"the jar for this Spark, which pyspark_skewext.jar_path() names."
    )


def fitting_facade_of(spark: SparkSession) -> Any:
    """Find the facade of the session; None also if it is for another line of Spark."""
    found = facade_of(spark)
    return None if found is None or other_line(spark._jvm, spark.version) else found


def api_of(spark: SparkSession, *others: SparkSession) -> Any:
    """Find the facade, checked and ready for joins; an error names the cure.

    One session with the operator is enough: the JVM then registers it in `spark`. A batch of a
    stream comes in a clone of the session, which may be older than a call of `register`.
    """
    check_session(spark)
    api = facade_of(spark)
    if api is None:
        raise runtime_error(
            "The skewext jar is not loaded in this session: build the session with "
            "pyspark_skewext.configure(builder), or call pyspark_skewext.register(spark)."
        )
    check_versions(spark._jvm, spark.version)
    # A release that is too old for its line.
    unsupported = api.unsupportedSpark()
    if unsupported is not None:
        raise runtime_error(str(unsupported))
    if not any(api.isOperatorAvailable(each._jsparkSession) for each in (spark, *others)):
        raise runtime_error(
            f"The skewext jar is loaded but this session does not use it: start the session with "
            f"spark.sql.extensions={EXTENSION}, or call pyspark_skewext.register(spark)."
        )
    return api
