"""How things are printed."""

from __future__ import annotations

import io
import json
import re

import pytest
import yaml
from rich.text import Text

from ballast.cli import output
from ballast.cli.output import Format, Screen, bar, console, duration, plain, shortened, show, structured, table


@pytest.mark.parametrize(
    ("score", "drawn"),
    [
        (0.0, "..........   0.0"),
        (49.0, "|||||.....  49.0"),
        (100.0, "|||||||||| 100.0"),
        (250.0, "|||||||||| 250.0"),
        (None, "no metrics"),
    ],
)
def test_a_score_is_a_bar_with_its_figure(score: float | None, drawn: str) -> None:
    assert bar(score).plain == drawn


@pytest.mark.parametrize(
    ("seconds", "written"),
    [(0, "0s"), (-3, "0s"), (59.9, "59s"), (60, "1m"), (90, "1m30s"), (3600, "1h"), (90_000, "1d1h"), (7205, "2h")],
)
def test_durations_read_as_kubectl_writes_them(seconds: float, written: str) -> None:
    assert duration(seconds) == written


@pytest.mark.parametrize(
    ("text", "width", "left"), [("exec-1", 6, "exec-1"), ("clickstream-exec-12", 12, "click~xec-12"), ("abc", 1, "~")]
)
def test_a_name_that_is_too_long_keeps_both_ends(text: str, width: int, left: str) -> None:
    assert shortened(text, width) == left


def test_names_give_way_before_figures_do() -> None:
    rows = [["a-very-long-name-of-a-node-that-goes-on", "95.0", "because of this and of that and of much more"]]
    drawn = plain(table(["node", "score", "why"], rows, right=["score"], cut=["node"], wrap=["why"]), width=50)
    assert max(map(len, drawn.splitlines())) <= 50
    assert "95.0" in drawn
    assert "~" in drawn
    assert drawn.split()[-1] == "more"


def test_a_column_without_any_content_is_left_out() -> None:
    assert plain(table(["zone", "node"], [["", "n1"], ["", "n2"]])) == "NODE\nn1\nn2"


def test_markup_in_names_is_printed_as_it_is() -> None:
    assert plain(table(["name"], [["[red]x[/red]"]], cut=["name"]), Text("[b]")) == "NAME\n[red]x[/red]\n[b]"


HOSTILE = "\x1b]0;owned\x07\x9b2J\rdone\u202e"
SEEN = "\ufffd]0;owned\ufffd2Jdone\ufffd"
"""rich itself leaves out the bell and the carriage return."""


@pytest.mark.parametrize("words", ["left out: [/x]", "[bold]all[/bold]"])
def test_markup_in_lines_is_printed_as_it_is(words: str) -> None:
    sheet = io.StringIO()
    Screen(file=sheet, width=80).print(words)
    assert sheet.getvalue() == f"{words}\n"


def test_what_a_terminal_would_obey_is_not_in_what_is_drawn() -> None:
    sheet = io.StringIO()
    Screen(file=sheet, force_terminal=True, width=80).print(table(["n"], [[HOSTILE]], cut=["n"]), Text(HOSTILE, "red"))
    drawn = re.sub(r"\x1b\[[0-9;]*m", "", sheet.getvalue())
    assert drawn.count(SEEN) == 2
    assert all(c.isprintable() or c == "\n" for c in drawn)
    assert SEEN in plain(Text(HOSTILE))


def test_where_stdout_is_no_terminal_lines_are_plain_and_whole(capsys: pytest.CaptureFixture[str]) -> None:
    show(table(["node", "score"], [["n" * 300, bar(95.0)]], cut=["node"]))
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert "n" * 300 in printed
    assert all(line == line.rstrip() for line in printed.splitlines())


@pytest.mark.parametrize(("no_color", "colored"), [("", True), ("1", False)])
def test_colors_are_for_terminals_that_want_them(monkeypatch: pytest.MonkeyPatch, no_color: str, colored: bool) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", "xterm-256color")
    sheet = io.StringIO()
    monkeypatch.setattr(output, "Screen", lambda **options: Screen(file=sheet, force_terminal=True, **options))
    console().print(bar(95.0))
    assert ("\x1b[31m" in sheet.getvalue()) is colored


def test_wide_is_not_cut_to_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    sheet = io.StringIO()
    monkeypatch.setattr(
        output, "Screen", lambda **options: Screen(**{"file": sheet, "force_terminal": True, **options})
    )
    monkeypatch.setenv("COLUMNS", "40")
    for form, whole in ((Format.TABLE, False), (Format.WIDE, True)):
        sheet.truncate(0)
        show(table(["node"], [["n" * 60]], cut=["node"]), form=form)
        assert ("n" * 60 in sheet.getvalue()) is whole


def test_programs_get_the_same_document_either_way() -> None:
    document = {"from": "a", "score": 1.5, "none": None, "many": [{"x": "é"}]}
    assert json.loads(structured(document, Format.JSON)) == document
    assert yaml.safe_load(structured(document, Format.YAML)) == document


def test_where_there_is_nothing_to_show_not_even_a_line_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    show()
    assert capsys.readouterr().out == ""
