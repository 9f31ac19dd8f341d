"""docs/doctor.md has every finding under its anchor, in the catalog's words, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from ballast.doctor.catalog import CATALOG

PAGE = Path(__file__).parents[3] / "docs" / "doctor.md"


def test_the_page_is_the_catalogs() -> None:
    _, *sections = re.split(r"^### ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    written = {
        head.strip(): " ".join(body.split("\n## ")[0].split())
        for head, _, body in (s.partition("\n") for s in sections)
    }
    assert written == {
        id_: f"*{entry.severity}* {entry.why} **Remedy:** {entry.remedy}" for id_, entry in CATALOG.items()
    }


def test_ids_make_anchors() -> None:
    assert all(re.fullmatch("[A-Z][A-Za-z]+", id_) for id_ in CATALOG)
    assert len({id_.lower() for id_ in CATALOG}) == len(CATALOG)
