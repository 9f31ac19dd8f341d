"""Each rule for prose finds its bad examples and passes its good ones; text is taken from where people read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.prose.rule import Rule, all_rules
from tests.prose.text import Piece, pieces

RULES = all_rules()


@pytest.mark.parametrize("rule", RULES, ids=[rule.name for rule in RULES])
def test_a_rule_finds_every_bad_example_and_no_good_one(rule: Rule) -> None:
    assert [text for text in rule.file.bad if not rule.findings(Piece(1, text))] == []
    assert [text for text in rule.file.good if rule.findings(Piece(1, text))] == []


def test_a_finding_names_the_line_the_match_and_what_to_write_instead() -> None:
    rule = next(rule for rule in RULES if rule.name == "old_words")
    ((line, remedy),) = rule.findings(Piece(7, "Places the set\nanew."))
    assert line == 8
    assert remedy.startswith('"anew": write "again"')


def test_a_match_may_be_wrapped() -> None:
    rule = next(rule for rule in RULES if rule.name == "own")
    assert rule.findings(Piece(1, "in a thread of its\n    own."))


def test_prose_in_python_is_comments_strings_of_several_words_and_names_of_tests(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text(
        'def test_one_thing() -> None:\n    # first line\n    # second line\n    print("several words", "code")\n'
    )
    assert {(piece.line, piece.text) for piece in pieces(file)} == {
        (1, "test one thing"),
        (2, "first line\nsecond line"),
        (4, "several words"),
    }


def test_code_in_markdown_is_no_prose_and_lines_stay(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    file.write_text("Run `anew`:\n```\nanew\n```\nDone.\n")
    (piece,) = pieces(file)
    assert "anew" not in piece.text
    assert piece.line_at(piece.text.index("Done")) == 5
