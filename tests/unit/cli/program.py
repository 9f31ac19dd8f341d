"""The program as a shell would run it, in this process."""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass

from ballast.cli.main import call


@dataclass(frozen=True, slots=True)
class Ended:
    code: int
    out: str
    err: str


def run(*arguments: str, name: str = "ballast") -> Ended:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            call(name, arguments)
        except SystemExit as ended:
            code = ended.code
    assert isinstance(code, int)
    return Ended(code, out.getvalue(), err.getvalue())


def exit_code(err: str) -> int:
    """What a refusal ends with: 2 if it is about an option, 1 if it is about the content of a file."""
    return 2 if err.startswith(("Error: -", "Usage:")) else 1
