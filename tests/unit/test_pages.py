"""README's first screen and the links of all pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.cli.program import run

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("charts/**/*.md")])
LINK = re.compile(r"\[[^\]]*\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)")


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """The file and the anchor of each link within the repository."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target, anchor in LINK.findall(text):
        yield (page.parent / target).resolve() if target else page, anchor


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_link_leads_nowhere(page: Path) -> None:
    for file, anchor in links(page):
        assert file.exists(), file
        assert not anchor or anchor in anchors(file), f"{file.name}#{anchor}"


def test_the_readme_leads_to_every_page() -> None:
    reached = {file for file, _ in links(ROOT / "README.md")}
    for page in reached.copy():
        reached |= {file for file, _ in links(page)} if page.suffix == ".md" else set()
    assert {page for page in PAGES if page.is_relative_to(ROOT / "docs")} <= reached


def test_the_readme_is_a_first_screen() -> None:
    assert len(README.splitlines()) <= 150


def rows(text: str) -> dict[str, list[str]]:
    """The cells of each row of the tables in a text, by the first one; of equal ones the first row counts."""
    found: dict[str, list[str]] = {}
    for line in re.findall(r"^\| (.+) \|$", text, re.MULTILINE):
        name, *cells = line.split(" | ")
        found.setdefault(name, cells)
    return found


def section(text: str, begin: str) -> str:
    return text.split(begin)[1]


def test_its_figures_are_those_that_the_benchmarks_recorded() -> None:
    peers = (ROOT / "docs" / "peers.md").read_text(encoding="utf-8")
    one = rows(section(peers, "**(i) one of 24**"))
    several = rows(section(peers, "**(iii) three, brokers in one zone**"))
    job = rows(section(peers, "hashing: records/s"))
    shown = rows(section(README, "## What it comes to"))
    for peer in ("Ballast", "kube-scheduler", "podAffinity to itself"):
        assert shown[peer] == [job[peer][0], job[peer][1], one[peer][1], several[peer][3]]
    assert f"{one['Ballast'][6]} s until the last of 24" in README
    assert f"kube-scheduler alone takes {one['kube-scheduler'][6]} s" in README
    batches = (ROOT / "docs" / "doctor.md").read_text(encoding="utf-8")
    assert "7.0 to 10.1 s" in batches
    assert "3.5 to 3.9 s" in batches
    assert "3.5 to 3.9 s" in README


def test_its_first_command_prints_what_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    command, printed = re.search(r"\$ pip install \. && ballast (.+)\n(.+)\n", README).groups()  # type: ignore[union-attr]
    ended = run(*command.split())
    assert ended.code == 0
    assert ended.out.startswith(f"{printed}\n")
