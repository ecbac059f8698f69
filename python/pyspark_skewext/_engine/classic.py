"""A session with a JVM in this process: calls of ``io.github.skewext.PythonApi`` by py4j."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from pyspark_skewext import _jvm
from pyspark_skewext._engine.request import Request, nothing_active
from pyspark_skewext._errors import first_line, runtime_error
from pyspark_skewext._jar import jar_path
from pyspark_skewext._jvm import EXTENSION, EXTENSIONS, JARS, api_of
from pyspark_skewext._watch import Progress, polled, watched

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class ClassicEngine:
    """The engine of a session whose driver is this process."""

    #: Inputs of a join have the same home. Sessions of one JVM can be joined.
    home = "this process"

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._jvm: Any = getattr(spark, "_jvm", None)

    def run(self, request: Request, progress: Progress | None = None) -> DataFrame:
        """Call a function; `progress` is for reports."""
        from pyspark.sql import DataFrame

        api = api_of(*(df.sparkSession for df in request.inputs))
        text, tables = request.sent()
        with watched(self._spark, progress):
            result = api.run(text, self._frames(tables), self._frames(request.inputs))
        return DataFrame(result, self._spark)

    def _frames(self, frames: Sequence[DataFrame]) -> Any:
        """A list of Java's, because not every gateway converts lists."""
        listed = self._jvm.java.util.ArrayList()
        for df in frames:
            listed.add(df._jdf)
        return listed

    def hot_keys(self, left: DataFrame, right: DataFrame, on: Any) -> None:
        """None, because the JVM itself looks for the hot keys of a join."""

    def explain(self, df: DataFrame) -> dict[str, Any]:
        """Explain the joins of a query; a note if no jar can be loaded into the driver."""
        api = _jvm.facade_of(self._spark)
        if api is None:
            # Only the driver needs it, and the session stays as it is.
            with suppress(RuntimeError):
                _jvm.add_to_class_loader(self._jvm, jar_path())
                api = _jvm.facade(self._jvm)
        if api is None:
            note: str | None = (
                "skewext is not loaded in this session, so Spark plans all joins alone. Use "
                "pyspark_skewext.configure(builder) or pyspark_skewext.register(spark)."
            )
        else:
            _jvm.check_versions(self._jvm)
            note = _jvm.other_line(self._jvm, self._spark.version)
        if note is not None:
            return {"notes": [note], "joins": [], "scans": [], "entries": [[note]]}
        return _json(api.explain(df._jdf))

    def doctor(self) -> dict[str, Any]:
        """Tell which parts are active; no jar, or one that does not fit, is a reason."""
        _jvm.check_session(self._spark)
        version = str(self._spark.version)
        found: dict[str, Any] = {}
        try:
            api = _jvm.facade_of(self._spark)
            if api is None:
                found = nothing_active(
                    version, "the skewext jar is not loaded in this session, see configure()"
                )
                return {**found, "notes": [self._why_no_jar()]}
            found = _jvm.build_of(self._jvm)
            _jvm.check_versions(self._jvm, version)
            found = _json(api.doctor(self._spark._jsparkSession))
        except Exception as error:
            found.update(nothing_active(version, first_line(error)))
        jars: list[str] = []
        with suppress(Exception):
            jars = _jvm.all_jars(self._jvm)
        if len(jars) > 1:
            note = f"There are {len(jars)} jars of skewext, and only one is used: keep one of "
            found["notes"] = [f"{note}{', '.join(jars)}.", *found["notes"]]
        return found

    def _why_no_jar(self) -> str:
        """Tell a missing jar from an extension that is missing, too, or has a wrong name."""
        names = str(self._spark.conf.get(EXTENSIONS, "") or "")
        jars = str(self._spark.sparkContext.getConf().get(JARS, "") or "")
        ours = [name.strip() for name in names.split(",") if "skewext" in name.lower()]
        if EXTENSION in ours:
            what = "Only the jar is missing"
        elif ours:
            what = f"The jar is missing, and the name of the extension is not {EXTENSION}"
        else:
            what = "The jar and the extension are missing"
        return f"{what}: {JARS} is {jars!r}, {EXTENSIONS} is {names!r}."

    def query_report(
        self,
        query: DataFrame | int | None,
        event_log: str | None,
        progress: Progress | None,
    ) -> dict[str, Any]:
        """Report on a query of this application, or of an event log."""
        api = api_of(self._spark)
        session = self._spark._jsparkSession
        if event_log is not None:
            log: Any = api.eventLog(session, event_log)
            with polled(lambda: (log.bytesRead(), log.totalBytes()), progress):
                return _json(api.queryReport(log, query))
        if query is None or isinstance(query, int):
            return _json(api.queryReport(session, query))
        return _json(api.queryReport(query._jdf))

    def register(self) -> None:
        """Load the jar into the driver, and offer the joins."""
        _jvm.check_session(self._spark)
        api = _jvm.facade_of(self._spark)
        late = api is None
        if late:
            api = self._load_late()
        _jvm.check_versions(self._jvm, self._spark.version)
        if api.isExtensionLoaded(self._spark._jsparkSession):
            return
        if not late:
            self._offer_to_executors()
        api.register(self._spark._jsparkSession)
        warnings.warn(
            "skewext was registered in a running session: multi_join, multi_full_join, asof_join, "
            "latest and skew_join work, but the hint SKEWEXT_JOIN, the table functions, rewritten "
            "joins and row numbers, splits of skewed partitions, spreading of null keys, bucket "
            "pruning and merging, and columnar shuffles are missing; to have them, start the "
            "session with pyspark_skewext.configure(builder) or with "
            f"spark.sql.extensions={EXTENSION}.",
            stacklevel=3,
        )

    def is_enabled(self) -> bool:
        """Tell whether the extension is in the session and switched on."""
        _jvm.check_session(self._spark)
        api = _jvm.fitting_facade_of(self._spark)
        if api is None:
            return False
        session = self._spark._jsparkSession
        return bool(api.isOperatorAvailable(session)) and bool(api.isEnabled(session))

    def _load_late(self) -> Any:
        jar = jar_path()
        _jvm.add_to_class_loader(self._jvm, jar)
        if _jvm.facade(self._jvm) is None:
            # Class loaders of other platforms: as SQL's ADD JAR.
            self._spark._jsparkSession.sessionState().resourceLoader().addJar(jar)
        else:
            self._spark._jsc.addJar(jar)
        api = _jvm.facade_of(self._spark)
        if api is None:
            raise runtime_error(
                f"The jar {jar} could not be loaded into the running JVM: start the session with "
                f"pyspark_skewext.configure(builder), or give the jar to spark-submit --jars."
            )
        return api

    def _offer_to_executors(self) -> None:
        """Send the jar to the executors where only the driver has it."""
        jar = _jvm.loaded_from(self._jvm)
        if jar is not None and PurePosixPath(jar).name not in str(self._spark._jsc.sc().listJars()):
            self._spark._jsc.addJar(jar)


def _json(text: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(str(text))
    return found
