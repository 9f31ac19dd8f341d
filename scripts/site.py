"""`make site`: the documentation as a site in build/site, out of the pages of the checkout. Broken links end it.

Pages are linked as they lie in the checkout, so the same links work there, in `ballast docs` and on the site.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "build" / "site-pages"
ZENSICAL = "zensical==0.0.73"
FIRST, HOME = "README.md", "index.md"
LINK = re.compile(r"(?<=\]\()(?!https?://|mailto:|#)([^)#\s]+)(?=#|\))")


def main() -> int:
    stage(PAGES)
    uv = shutil.which("uv")
    if uv is None:
        print("site: uv is missing: put it on PATH", file=sys.stderr)
        return 1
    command = [uv, "tool", "run", "--quiet", "--from", ZENSICAL, "zensical", "build", "--clean", "--strict"]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def stage(target: Path) -> None:
    """Copy the pages, and the files that they link to, as they lie in the checkout."""
    shutil.rmtree(target, ignore_errors=True)
    waiting, seen = [PurePosixPath(FIRST), *_named()], set[PurePosixPath]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        place = target / (HOME if str(name) == FIRST else name)
        place.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            (place / "index.md").parent.mkdir(parents=True, exist_ok=True)
            (place / "index.md").write_text(_listing(name), encoding="utf-8")
            waiting += [name / file.name for file in _files(name)]
        elif name.suffix == ".md":
            text = (ROOT / name).read_text(encoding="utf-8")
            place.write_text(_on_the_site(name, text), encoding="utf-8")
            waiting += links(name, text)
        else:
            shutil.copy(ROOT / name, place)


def links(page: PurePosixPath, text: str) -> Iterator[PurePosixPath]:
    """What a page links to in the checkout."""
    for link in LINK.finditer(text):
        found = _target(page, link[1])
        if (ROOT / found).exists():
            yield found


def _named() -> list[PurePosixPath]:
    """The pages of the site's navigation."""
    listed = re.findall(r'= "([\w/.-]+\.md)"', (ROOT / "zensical.toml").read_text(encoding="utf-8"))
    return [PurePosixPath(name) for name in listed if name != HOME]


def _target(page: PurePosixPath, link: str) -> PurePosixPath:
    return PurePosixPath(os.path.normpath(page.parent / link))


def _on_the_site(page: PurePosixPath, text: str) -> str:
    """The page's text there: the first page has another name, and a folder is a page that lists its files."""

    def link(found: re.Match[str]) -> str:
        target = _target(page, found[1])
        if str(target) == FIRST:
            return str(PurePosixPath(found[1]).parent / HOME)
        return f"{found[1].rstrip('/')}/index.md" if (ROOT / target).is_dir() else found[1]

    return LINK.sub(link, text)


def _files(folder: PurePosixPath) -> list[Path]:
    return sorted(path for path in (ROOT / folder).iterdir() if path.is_file())


def _listing(folder: PurePosixPath) -> str:
    return f"# {folder}\n\n" + "".join(f"- [{path.name}]({path.name})\n" for path in _files(folder))


if __name__ == "__main__":
    sys.exit(main())
