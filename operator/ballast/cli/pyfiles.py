"""`ballast pyfiles`: the part of Ballast that jobs import, as one file for spark-submit."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Annotated

import typer

import ballast
from ballast.errors import BallastError
from ballast.job_files import FOR_PROMETHEUS, NEEDED, job_files

EXAMPLES = (
    "ballast pyfiles ballast.zip",
    "spark-submit --py-files ballast.zip job.py",
)
_SOME_TIME = (1980, 1, 1, 0, 0, 0)
"""Of each entry, so that the same modules are the same file."""


def pyfiles(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The archive to write, such as ballast.zip.")],
) -> None:
    """Write routing, audit and the data source to an archive for --py-files, or for addArtifacts of Spark Connect.

    The Python of the executors needs the packages that are named in the end.
    """
    package = Path(ballast.__file__).parent
    modules = list(job_files(package))
    try:
        file.write_bytes(archive(package, modules))
    except OSError as error:
        raise BallastError(f"{file}: {error.strerror or error}: name a file that can be written") from error
    typer.echo(f"{file}: Ballast {ballast.__version__}, {len(modules)} modules, {file.stat().st_size >> 10} KiB")
    typer.echo(f"Executors need {', '.join(NEEDED)}; for Prometheus also {', '.join(FOR_PROMETHEUS)}.")


def archive(package: Path, modules: list[Path]) -> bytes:
    """A zip of these modules of the package, in their places."""
    text = io.BytesIO()
    with zipfile.ZipFile(text, "w", zipfile.ZIP_DEFLATED) as packed:
        for module in modules:
            entry = zipfile.ZipInfo(f"ballast/{module.as_posix()}", _SOME_TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            packed.writestr(entry, (package / module).read_bytes())
    return text.getvalue()
