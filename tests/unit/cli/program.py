"""The program as a shell would run it, in this process."""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass
from pathlib import Path

from ballast.cli.main import call
from tests.apiserver import ApiServer, kubeconfig, serving


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


def run_in(cluster: ApiServer, folder: Path, *arguments: str) -> Ended:
    """With a kubeconfig of this cluster, in the folder."""
    with serving(cluster):
        return run(*arguments, "--kubeconfig", str(kubeconfig(folder, cluster.url)))


def exit_code(err: str) -> int:
    """What a refusal ends with: 2 if an option can't be used, 1 if a server doesn't answer or a file's content is
    wrong."""
    return 2 if err.startswith("Error: -") and "name a Prometheus that answers" not in err else 1
