"""The Spark session of the demo: what a newcomer has, plus the extension."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from demo.options import DemoError
from pyspark_skewext import configure

# The demo tells its story on the terminal; Spark's start-up warnings would drown it. The gateway
# has a logger of its own because Spark announces the level it gives to one without.
QUIET_LOG = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
logger.skewext.name = io.github.skewext
logger.skewext.level = warn
"""


@contextmanager
def demo_session(master: str, shuffle_partitions: int) -> Iterator[tuple[SparkSession, Path]]:
    """Start Spark with the extension in a temporary directory; stop and remove both at the end.

    Raises
    ------
    DemoError
        The session cannot be started, or one is running already: that has its own settings,
        and it is not ours to stop.
    """
    if SparkSession.getActiveSession() is not None:
        raise DemoError(
            "a Spark session is running in this process already, and the demo starts its own; "
            "run it from a terminal: make demo"
        )
    with tempfile.TemporaryDirectory(prefix="skewext-demo-") as directory:
        work = Path(directory)
        log_settings = work / "log4j2.properties"
        log_settings.write_text(QUIET_LOG)
        builder = (
            SparkSession.builder.appName("pyspark-skewext demo")
            .master(master)
            .config("spark.sql.shuffle.partitions", str(shuffle_partitions))
            .config("spark.driver.memory", "2g")
            .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={log_settings}")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.warehouse.dir", str(work / "warehouse"))
        )
        try:
            spark = configure(builder).getOrCreate()
        except PySparkException as error:
            # The jar is missing or of another version, or Java is.
            raise DemoError(str(error)) from error
        try:
            yield spark, work
        finally:
            spark.stop()
