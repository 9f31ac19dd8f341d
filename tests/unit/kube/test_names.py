"""The names that users put on pods, namespaces and nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ballast.kube import names

PAGE = Path(__file__).parents[3] / "docs" / "labels.md"
OURS = sorted({value for value in vars(names).values() if isinstance(value, str) and value.startswith("ballast.dev/")})


@pytest.mark.parametrize("name", OURS)
def test_every_name_of_ours_is_documented(name: str) -> None:
    assert f"`{name}`" in PAGE.read_text(encoding="utf-8")
