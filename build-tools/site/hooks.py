"""What the site needs of the repository beside docs/.

Pages there link to files of the whole repository, so that they also work where the repository is
browsed. Each file that a page links to becomes a part of the site, and links are made anew from
where the pages stand there: docs/ is the root of the site, everything else keeps its path.
"""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
_ROLE = re.compile(r":(?:func|class|meth|attr|data|mod|exc|obj):(?=<code>)")
_NAME_IN_CELL = re.compile(r"(?<=<td><code>)[\w.]+(?=</code>)")
_LINK = re.compile(r"(\]\()([^)#\s:]+)((?:#[^)]*)?\))")


def on_config(config: Any) -> Any:
    """Leave out pages of the navigation that are not written yet."""
    config.nav = [_present(entry) for entry in config.nav]
    return config


def on_files(files: Files, *, config: Any) -> Files:
    """Add what pages, and pages added for them, link to outside of docs/."""
    files.append(
        File.generated(config, "site.css", abs_src_path=str(ROOT / "build-tools/site/site.css"))
    )
    found = {file.src_uri for file in files}
    wanted = sorted(_pages(config.nav) - found)
    reading = [file.src_uri for file in files if file.src_uri.endswith(".md")]
    while wanted or reading:
        for page in reading:
            text = _source(page).read_text(encoding="utf-8")
            wanted += [_on_site(page, link) for _, link, _ in _LINK.findall(text)]
        reading = []
        for path in wanted:
            if path not in found and _source(path).is_file():
                found.add(path)
                files.append(File.generated(config, path, abs_src_path=str(_source(path))))
                reading += [path] if path.endswith(".md") else []
        wanted = []
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Files) -> str:
    """Make the links of a page lead from where it is on the site."""
    here = page.file.src_uri

    def moved(match: re.Match[str]) -> str:
        there = posixpath.relpath(_on_site(here, match[2]), posixpath.dirname(here) or ".")
        return match[1] + there + match[3]

    return _LINK.sub(moved, markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Make names of docstrings and tables fit.

    Docstrings have the roles of Sphinx, as PySpark's have; here they are just names. A long name in
    a narrow column may break behind its dots.
    """
    return _NAME_IN_CELL.sub(lambda name: name[0].replace(".", ".<wbr>"), _ROLE.sub("", html))


def _present(entry: Any) -> Any:
    if isinstance(entry, str):
        return entry
    ((title, child),) = entry.items()
    if isinstance(child, str):
        return entry
    return {title: [each for each in map(_present, child) if _exists(each)]}


def _exists(entry: Any) -> bool:
    child = entry if isinstance(entry, str) else next(iter(entry.values()))
    return not isinstance(child, str) or _source(child).is_file()


def _pages(nav: Any) -> set[str]:
    if isinstance(nav, str):
        return {nav}
    children = nav.values() if isinstance(nav, dict) else nav
    return {page for child in children for page in _pages(child)}


def _source(path: str) -> Path:
    """The file of the repository that stands at this path of the site."""
    return ROOT / "docs" / path if (ROOT / "docs" / path).exists() else ROOT / path


def _on_site(page: str, link: str) -> str:
    """The path on the site that a link leads to, as it is written in a page's file."""
    folder = os.path.relpath(_source(page).parent, ROOT)
    target = posixpath.normpath(posixpath.join(folder, link))
    return target[len("docs/") :] if target.startswith("docs/") else target
