"""PySpark's own error classes, imported on first use.

The package must import without PySpark: ``jar_path()`` serves ``spark-submit --jars`` on machines
where only spark-submit finds PySpark. The keywords besides ``message`` differ between versions.
"""

from __future__ import annotations


def first_line(error: Exception) -> str:
    """The first line of an error's message."""
    return str(error).strip().partition("\n")[0].rstrip(";") or type(error).__name__


def type_name(thing: object) -> str:
    """The name of its type; with the module, for a DataFrame that is not Spark's."""
    kind = type(thing)
    return f"{kind.__module__}.{kind.__name__}" if kind.__name__ == "DataFrame" else kind.__name__


def type_error(message: str) -> Exception:
    try:
        from pyspark.errors import PySparkTypeError as Error
    except ImportError:
        return TypeError(message)
    return Error(message=message)


def value_error(message: str) -> Exception:
    from pyspark.errors import PySparkValueError as Error

    return Error(message=message)


def analysis_error(message: str) -> Exception:
    from pyspark.errors import AnalysisException as Error

    return Error(message=message)


def runtime_error(message: str) -> Exception:
    try:
        from pyspark.errors import PySparkRuntimeError as Error
    except ImportError:
        return RuntimeError(message)
    return Error(message=message)
