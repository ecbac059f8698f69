"""PySpark's own error classes, imported when they are needed.

The package must import without PySpark (``jar_path()`` feeds ``spark-submit --jars`` on machines
where only spark-submit knows where PySpark is). Only ``message=`` is passed: the other keywords
were renamed between Spark 3.5 and 4.
"""

from __future__ import annotations


def type_error(message: str) -> Exception:
    from pyspark.errors import PySparkTypeError

    return PySparkTypeError(message=message)


def value_error(message: str) -> Exception:
    from pyspark.errors import PySparkValueError

    return PySparkValueError(message=message)


def analysis_error(message: str) -> Exception:
    from pyspark.errors import AnalysisException

    return AnalysisException(message=message)


def execution_error(message: str) -> Exception:
    from pyspark.errors import QueryExecutionException

    return QueryExecutionException(message=message)


def runtime_error(message: str) -> Exception:
    try:
        from pyspark.errors import PySparkRuntimeError
    except ImportError:
        return RuntimeError(message)
    return PySparkRuntimeError(message=message)
