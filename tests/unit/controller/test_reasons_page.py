"""The page that explains every reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from ballast.model import Reason
from ballast.moves.state import Word

PAGE = Path(__file__).parents[3] / "docs" / "reasons.md"


@pytest.mark.parametrize("word", [*Reason, *Word])
def test_every_reason_that_users_meet_is_explained(word: Reason | Word) -> None:
    assert f"`{word}`" in PAGE.read_text(encoding="utf-8")
