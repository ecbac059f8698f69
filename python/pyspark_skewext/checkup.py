"""``doctor``: which parts of the extension are active in a session, and why others are off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark_skewext._engine import engine_of
from pyspark_skewext._version import __version__
from pyspark_skewext.render.explanation import Listing
from pyspark_skewext.render.shown import Shown
from pyspark_skewext.results import filled

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_IN_THE_LOG = (
    "The driver's log lists the same in one line at level INFO: search it for SkewExtensions."
)


@dataclass(frozen=True)
class CheckedPart:
    """A part of the extension; `reason` says why it is not active.

    A part that is not `needed` has nothing to do in the session, such as the tab without a UI.
    """

    name: str
    active: bool
    reason: str | None
    needed: bool = True


@dataclass(frozen=True, repr=False)
class Checkup(Shown):
    """The result of :func:`doctor`: versions, the parts of the extension, and further facts.

    `jar` is the version of the jar in the session and `spark_line` the line of Spark that it is
    built for; both are None if there is no jar. It prints as text, and shows a
    page in notebooks.
    """

    version: str
    jar: str | None
    spark_line: str | None
    spark: str
    parts: list[CheckedPart]
    notes: list[str]
    _parts: ClassVar[Any] = {"parts": CheckedPart}

    @property
    def healthy(self) -> bool:
        """Whether all needed parts are active, and nothing has failed."""
        return all(part.active or not part.needed for part in self.parts) and not self.notes

    def _page(self) -> Listing:
        jar = "no jar" if self.jar is None else f"jar {self.jar} for Spark {self.spark_line}"
        width = max(len(part.name) for part in self.parts)
        reasons = {part.reason for part in self.parts}
        if len(self.parts) > 1 and len(reasons) == 1 and not self.parts[0].active:
            # One line is enough for one reason.
            parts = [CheckedPart(f"all {len(self.parts)} parts", False, self.parts[0].reason)]
            width = 0
        else:
            parts = self.parts
        lines = [
            f"active  {part.name}"
            if part.active
            else f"off     {part.name:<{width}}  {part.reason}"
            for part in parts
        ]
        title = f"skewext {self.version}, {jar}, on Spark {self.spark}"
        where = [_IN_THE_LOG] if any(part.active for part in self.parts) else []
        return Listing([(title, lines), *((note, []) for note in [*self.notes, *where])])


def doctor(spark: SparkSession) -> Checkup:
    """List the parts of the extension: which are active in a session, and why others are off.

    It reads settings and the plan rules of the session, and runs no job. Missing parts are part of
    the result and no errors: no jar, a jar of another version or for another Spark, a session that
    was started without the extension.

    Parameters
    ----------
    spark : SparkSession
        Any session, also one of Spark Connect.

    Returns
    -------
    Checkup
        Shows itself in notebooks and at the prompt; in a script, print it.

    Raises
    ------
    PySparkTypeError
        If `spark` is not a session.

    Examples
    --------
    >>> checkup = skewext.doctor(spark)
    >>> [part.active for part in checkup.parts if part.name == "multi-way joins"]
    [True]
    """
    found: dict[str, Any] = engine_of(spark).doctor()
    figures = {"jar": found.get("version"), "spark_line": None, **found}
    return filled(Checkup, figures, version=__version__)
