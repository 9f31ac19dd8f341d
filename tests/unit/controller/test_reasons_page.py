"""The page that explains every reason."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ballast.model import ConditionReason, EventReason, Reason
from ballast.moves.state import MoveReason

PAGE = Path(__file__).parents[3] / "docs" / "reasons.md"
REASONS = (*Reason, *ConditionReason, *EventReason, *MoveReason)
REASON_TABLE = "| Reason | "


def explained() -> set[str]:
    """The reasons in the first column of the page's tables of reasons."""
    found: set[str] = set()
    inside = False
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        inside = line.startswith("|") and (inside or line.startswith(REASON_TABLE))
        if inside:
            found.update(re.findall(r"`(\w+)`", line.split("|")[1]))
    return found


@pytest.mark.parametrize("reason", sorted({str(reason) for reason in REASONS}))
def test_every_reason_that_users_meet_is_explained(reason: str) -> None:
    assert f"`{reason}`" in PAGE.read_text(encoding="utf-8")


def test_no_reason_is_explained_that_does_not_exist() -> None:
    assert explained() - set(REASONS) == set()
    assert len(explained()) > len(Reason)
