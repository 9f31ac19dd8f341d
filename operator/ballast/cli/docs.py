"""`ballast docs`: the pages of the documentation, which every installation has."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

import ballast
from ballast.errors import InvalidField, nearest

EXAMPLES = (
    "ballast docs",
    "ballast docs routing",
    "ballast docs doctor#failuresneverexpire",
)
_HEADING = re.compile(r"(#{1,6}) (.+)")


def docs(
    page: Annotated[
        str | None, typer.Argument(metavar="PAGE[#SECTION]", help="What to print. Default: the names of the pages.")
    ] = None,
) -> None:
    """Print a page of the documentation, or one section of it, as Markdown."""
    pages = {path.stem: path for path in sorted(_folder().glob("*.md"))}
    if page is None:
        for name, path in pages.items():
            typer.echo(f"{name:<16} {path.read_text(encoding='utf-8').partition(chr(10))[0].lstrip('# ')}")
        return
    name, _, section = page.partition("#")
    name = name.removeprefix("docs/").removesuffix(".md")
    if name not in pages:
        near = nearest(name, pages)
        hint = f"did you mean {near}? " if near else ""
        raise InvalidField("PAGE", name, f"{hint}there are {', '.join(pages)}")
    text = pages[name].read_text(encoding="utf-8")
    typer.echo(_section(text, section, page) if section else text, nl=False)


def _folder() -> Path:
    """Within the package where it was installed; in a checkout next to the code."""
    package = Path(ballast.__file__).parent
    installed = package / "docs"
    return installed if installed.is_dir() else package.parents[1] / "docs"


def _section(text: str, anchor: str, page: str) -> str:
    """From the heading of this anchor to the next one that is no deeper. Raises InvalidField."""
    lines = text.splitlines(keepends=True)
    headings = [(at, found) for at, line in enumerate(lines) if (found := _HEADING.match(line))]
    for position, (at, found) in enumerate(headings):
        if _anchor(found[2]) == anchor.lower():
            later = (end for end, other in headings[position + 1 :] if len(other[1]) <= len(found[1]))
            return "".join(lines[at : next(later, len(lines))])
    raise InvalidField("PAGE", page, f"no such section; there are {', '.join(_anchor(f[2]) for _, f in headings)}")


def _anchor(heading: str) -> str:
    """As GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
