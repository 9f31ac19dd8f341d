"""`ballast snapshot`: which pool it writes, and where."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ballast.cli.snapshot import only
from ballast.cli.source import NotThatPolicyError, Seen
from tests.unit.cli.pools import a_situation
from tests.unit.cli.program import run


def test_the_only_policy_need_not_be_named() -> None:
    assert only(Seen((a_situation(),))) == a_situation()


def test_of_several_one_must_be_named() -> None:
    other = replace(a_situation(), policy=replace(a_situation().policy, name="batch"))
    with pytest.raises(NotThatPolicyError, match="name one with -p: streaming, batch"):
        only(Seen((a_situation(), other)))


def test_a_file_without_a_place_is_told_before_the_cluster_is_asked(tmp_path: Path) -> None:
    file = tmp_path / "absent" / "pool.yaml"
    told = run("snapshot", "--output-file", str(file), "--kubeconfig", str(tmp_path / "no-kubeconfig"))
    assert (told.code, told.out) == (2, "")
    assert told.err.startswith(f"Error: --output-file: '{file}': there is no folder {file.parent}")
