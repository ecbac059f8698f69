"""The settings of Spark outside the session builder.

Spark reads ``PYSPARK_SUBMIT_ARGS`` and ``spark-defaults.conf`` when the JVM starts. A setting of
the builder replaces theirs, so to append to a setting we read them first.
"""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SUBMIT_ARGS = "PYSPARK_SUBMIT_ARGS"

_LOAD_DEFAULTS = "--load-spark-defaults"
_FLAGS = {
    *("-v", "--verbose", "--supervise", "-h", "--help", "--version", "--usage-error"),
    _LOAD_DEFAULTS,
}
_SETTINGS = {"--jars": "spark.jars", "--packages": "spark.jars.packages"}


@dataclass
class SubmitArguments:
    """The arguments in ``PYSPARK_SUBMIT_ARGS``, as far as this package needs them."""

    tokens: list[str]
    properties_file: str | None = None
    loads_defaults: bool = False
    conf: dict[str, str] = field(default_factory=dict)

    @classmethod
    def from_environment(cls) -> SubmitArguments:
        parsed = cls(shlex.split(os.environ.get(SUBMIT_ARGS, "pyspark-shell")))
        options = {option: value for option, value, _ in parsed._spans()}
        for option, value, _ in parsed._spans():
            if option in ("--conf", "-c", "--c") and "=" in value:
                key, _, setting = value.partition("=")
                parsed.conf[key.strip()] = setting
        parsed.properties_file = options.get("--properties-file")
        parsed.loads_defaults = _LOAD_DEFAULTS in options
        # An option goes before the setting that it stands for.
        parsed.conf.update({_SETTINGS[o]: options[o] for o in _SETTINGS if o in options})
        return parsed

    def with_jars(self, jars: str) -> str:
        """Write the arguments with `jars` instead of their ``--jars``."""
        kept: list[str] = []
        position = 0
        for option, _, width in self._spans():
            if option != "--jars":
                kept += self.tokens[position : position + width]
            position += width
        return shlex.join(["--jars", jars, *kept, *self.tokens[position:]])

    def _spans(self) -> list[tuple[str, str, int]]:
        """List options, their values and their numbers of tokens, up to the script."""
        spans: list[tuple[str, str, int]] = []
        position = 0
        while position < len(self.tokens) and self.tokens[position].startswith("-"):
            token = self.tokens[position]
            if token.startswith("--") and "=" in token:
                option, _, value = token.partition("=")
                width = 1
            elif token in _FLAGS or position + 1 == len(self.tokens):
                option, value, width = token, "", 1
            else:
                option, value, width = token, self.tokens[position + 1], 2
            spans.append((option, value, width))
            position += width
        return spans


def default_settings(
    properties_file: str | None = None, loads_defaults: bool = False
) -> dict[str, str]:
    """Read ``spark-defaults.conf``, or the file of ``--properties-file``, or both."""
    settings: dict[str, str] = {}
    if loads_defaults or not properties_file:
        settings.update(_settings_in(_defaults_file()))
    if properties_file:
        settings.update(_settings_in(Path(properties_file)))
    return settings


def _settings_in(path: Path) -> dict[str, str]:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    settings: dict[str, str] = {}
    # A backslash at the end of a line continues it (java.util.Properties).
    for line in re.sub(r"\\\r?\n\s*", "", text).splitlines():
        entry = re.match(r"\s*([^\s#!=:][^\s=:]*)(?:\s*[=:]\s*|\s+)(.*?)\s*$", line)
        if entry:
            settings[entry.group(1)] = entry.group(2)
    return settings


def _defaults_file() -> Path:
    directory = os.environ.get("SPARK_CONF_DIR")
    if directory is not None:
        return Path(directory) / "spark-defaults.conf"
    from pyspark import find_spark_home

    home: Any = find_spark_home
    return Path(home._find_spark_home()) / "conf" / "spark-defaults.conf"
