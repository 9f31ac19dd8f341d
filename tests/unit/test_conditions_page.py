"""The page on observability names every condition. It reads the code, which the benchmark of mutation changes."""

from __future__ import annotations

import re
from pathlib import Path

from ballast.controller import status

PAGE = Path(__file__).parents[2] / "docs" / "observability.md"
ROW = re.compile(r"^\| `(\w+)`(?: \*)? \| (?:all|[^|]*(?:Policy|Topology)) \|", re.MULTILINE)


def test_the_page_lists_every_condition() -> None:
    listed = set(ROW.findall(PAGE.read_text(encoding="utf-8")))
    code = "".join(path.read_text(encoding="utf-8") for path in Path(status.__file__).parent.glob("*.py"))
    assert listed == set(re.findall(r'judge\.set(?:_while)?\(\s*"(\w+)"', code))
