"""`ballast docs`: what messages point to is there in every installation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ballast.doctor.catalog import CATALOG
from tests.unit.cli.program import run

ROOT = Path(__file__).parents[3]


def test_every_page_is_listed_with_its_title() -> None:
    lines = run("docs").out.splitlines()
    assert [line.split()[0] for line in lines] == sorted(page.stem for page in (ROOT / "docs").glob("*.md"))
    assert all(len(line.split()) > 1 for line in lines)


def test_a_page_is_printed_as_it_stands() -> None:
    assert run("docs", "routing").out == (ROOT / "docs/routing.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("finding", CATALOG)
def test_each_finding_points_to_a_section(finding: str) -> None:
    ended = run("docs", f"doctor#{finding.lower()}")
    assert ended.code == 0, ended.err
    assert finding in ended.out.splitlines()[0]


@pytest.mark.parametrize(
    ("page", "words"), [("siizing", "did you mean sizing?"), ("routing#nosuch", "no such section")]
)
def test_what_is_not_there_is_refused_with_what_is(page: str, words: str) -> None:
    ended = run("docs", page)
    assert ended.code == 2
    assert words in ended.err


def texts(path: Path) -> Iterator[str]:
    """The strings of a module, docstrings aside."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    told = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
    for each in ast.walk(tree):
        if isinstance(each, ast.Constant) and isinstance(each.value, str) and id(each) not in told:
            yield each.value


def test_messages_name_no_path_of_the_repository() -> None:
    package, own = ROOT / "operator/ballast", re.compile(r"(?<![\w/.-])docs/")  # no part of another site's address
    found = {path.name for path in package.rglob("*.py") if any(map(own.search, texts(path)))}
    # These two read the folder itself.
    assert found == {"crds.py", "docs.py"}
