"""`ballast crds`: write the custom resource definitions and their reference, or check that they are current."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ballast.api import crd, reference
from ballast.errors import BallastError, InvalidField

EXAMPLES = (
    "ballast crds",
    "ballast crds --check",
    "ballast crds --directory manifests",
)

DEFINITIONS = Path("crds")
CHART_COPY = Path("charts/ballast/crds")
PAGE = Path("docs/resources.md")


@dataclass(frozen=True, slots=True)
class Files:
    """Where generated files belong."""

    directories: tuple[Path, ...]
    """Of the definitions; each gets all of them."""
    page: Path | None = None
    """The reference of all fields."""

    @classmethod
    def of_repository(cls, root: Path) -> Files:
        """All that a checkout holds. Raises BallastError if `root` is no checkout."""
        missing = [path for path in (DEFINITIONS, CHART_COPY, PAGE.parent) if not (root / path).is_dir()]
        if missing:
            absent = ", ".join(str(path) for path in missing)
            raise BallastError(f"{root.resolve()} has no {absent}: go to the top of a checkout, or name a --directory")
        return cls((root / DEFINITIONS, root / CHART_COPY), root / PAGE)

    def drifted(self) -> list[Path]:
        """Those that differ from the models, are missing, or are left over."""
        found = [directory / name for directory in self.directories for name in crd.check(directory)]
        return [*found, *([self.page] if self.page and not reference.is_current(self.page) else [])]

    def write(self) -> list[Path]:
        """Make all current; returns those that were not."""
        changed = self.drifted()
        for directory in self.directories:
            crd.write(directory)
        if self.page in changed:
            reference.write(self.page)
        return changed


def crds(
    check: Annotated[bool, typer.Option("--check", help="Write nothing; end with 1 if a file differs.")] = False,
    directory: Annotated[
        list[Path] | None,
        typer.Option(
            help="Only the definitions, to this directory; may be repeated. Else all of the checkout.",
            metavar="DIRECTORY",
        ),
    ] = None,
) -> None:
    """Generate the custom resource definitions, the chart's copy and docs/resources.md from the models."""
    files = Files(tuple(directory)) if directory else Files.of_repository(Path())
    if check:
        _report(files.drifted())
        return
    try:
        changed = files.write()
    except OSError as error:
        raise InvalidField("--directory", error.filename, f"{error.strerror}: name one that can be written") from error
    for path in changed:
        typer.echo(f"wrote {path}" if path.exists() else f"removed {path}")
    if not changed:
        typer.echo("all generated files are current")


def _report(drifted: Sequence[Path]) -> None:
    for path in drifted:
        typer.echo(f"{path} differs from the models: run `ballast crds`", err=True)
    if drifted:
        raise typer.Exit(1)
