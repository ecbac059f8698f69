"""Build the site into target/site, and see that its pages load nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SITE = HERE.parents[1] / "target" / "site"
#: The theme tells of its successor at each build.
_NO_NEWS = {"NO_MKDOCS_2_WARNING": "1"}
#: What a browser fetches by itself; a link that a reader may follow is no such thing.
_FETCHED = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|embed)\b[^>]*?\bsrc=["']?(?:https?:)?//"""
    r"""|<link\b(?=[^>]*\brel=["']?(?:stylesheet|preconnect|preload|icon|dns-prefetch))"""
    r"""[^>]*?\bhref=["']?(?:https?:)?//"""
)


def fetched_from_elsewhere(page: str) -> list[str]:
    """The tags that make a browser fetch something that is not of the site."""
    return [match.group() for match in _FETCHED.finditer(page)]


def main() -> int:
    """Build, then look through all pages."""
    # Not --quiet: with it warnings are not counted.
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(HERE / "mkdocs.yml")]
    built = subprocess.run(
        command, check=False, text=True, stderr=subprocess.PIPE, env={**os.environ, **_NO_NEWS}
    )
    said = [line for line in built.stderr.splitlines() if line.strip() and "INFO" not in line]
    if said:
        print("\n".join(said), file=sys.stderr)
    if built.returncode:
        return built.returncode
    pages = sorted(SITE.rglob("*.html"))
    outside = [
        (page, tag) for page in pages for tag in fetched_from_elsewhere(page.read_text("utf-8"))
    ]
    for page, tag in outside:
        print(f"{page.relative_to(SITE)} fetches from elsewhere: {tag}", file=sys.stderr)
    print(f"{len(pages)} pages in {SITE.relative_to(HERE.parents[1])}")
    return 1 if outside else 0


if __name__ == "__main__":
    sys.exit(main())
