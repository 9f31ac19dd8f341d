"""docs/sizing.md shows what `ballast size` prints for the files in examples/sizing."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.unit.cli.program import run

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "sizing.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"```console\n\$ ballast (.*?)\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize(("command", "shown"), SHOWN, ids=[command for command, _ in SHOWN])
def test_the_page_shows_real_output(command: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line of only … stands for any lines."""
    monkeypatch.chdir(ROOT)
    told = run(*shlex.split(command))
    assert told.code == 0, told.err
    pattern = "".join("(?:.*\n)*?" if line == "…" else re.escape(line) + "\n" for line in shown.splitlines())
    assert re.fullmatch(pattern, told.out), told.out


def test_the_page_shows_every_kind_of_input() -> None:
    commands = " ".join(command for command, _ in SHOWN)
    assert all(option in commands for option in ("--progress", "--event-log", "--gc-log", "-f ", "--set"))
