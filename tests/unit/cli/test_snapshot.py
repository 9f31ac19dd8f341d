"""`ballast snapshot`: which pool it writes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ballast.cli.snapshot import only
from ballast.cli.source import NotThatPolicyError, Seen
from tests.unit.cli.pools import a_situation


def test_the_only_policy_need_not_be_named() -> None:
    assert only(Seen((a_situation(),))) == a_situation()


def test_of_several_one_must_be_named() -> None:
    other = replace(a_situation(), policy=replace(a_situation().policy, name="batch"))
    with pytest.raises(NotThatPolicyError, match="say which with -p: streaming, batch"):
        only(Seen((a_situation(), other)))
