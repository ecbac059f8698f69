"""The version of this package, which is also that of the jar it needs."""

from __future__ import annotations

import importlib.metadata
import pkgutil
from pathlib import Path


def _read_version() -> str:
    # A wheel, or a zip given to --py-files, may carry the file next to the modules.
    packaged = _packaged()
    if packaged is not None:
        return packaged
    # A checkout has it at the root, shared with the build of the jar.
    root = Path(__file__).resolve().parents[2]
    checkout = root / "version.txt"
    if checkout.is_file() and (root / "python" / "pyspark_skewext").is_dir():
        return checkout.read_text(encoding="utf-8").strip()
    return importlib.metadata.version("pyspark-skewext")


def _packaged() -> str | None:
    try:
        data = pkgutil.get_data("pyspark_skewext", "version.txt")
    except OSError:
        return None
    return None if data is None else data.decode("utf-8").strip()


__version__ = _read_version()
