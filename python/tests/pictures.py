"""Pictures in what reports show in notebooks."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET


def svg_of(page: str) -> ET.Element:
    """The picture of a page; fails where there is none, or it is not well-formed."""
    found = re.search(r"<svg.*</svg>", page, re.DOTALL)
    assert found
    return ET.fromstring(found.group())
