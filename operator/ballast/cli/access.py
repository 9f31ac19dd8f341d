"""How a command reaches the cluster: as kubectl does."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ballast.kube.connection import Connection

KubeconfigOption = Annotated[
    Path | None, typer.Option(help="Else KUBECONFIG, the pod's own account, or ~/.kube/config.", metavar="FILE")
]
ContextOption = Annotated[
    str | None, typer.Option(help="Context in the kubeconfig file. Default: the current one.", metavar="NAME")
]


def address(url: str | None) -> str | None:
    """Of an option. Raises BadParameter, whose text shows no password."""
    if url is not None and not url.startswith(("http://", "https://")):
        raise typer.BadParameter(
            f"{url.rpartition('@')[2]!r}: write an address with its scheme, such as http://localhost:9090"
        )
    return url


def connect(kubeconfig: Path | None, context: str | None) -> Connection:
    """Raises NotConnected with what to set."""
    from ballast.kube.connection import Connection  # noqa: PLC0415 -- its client takes a second to load

    return Connection.found(os.environ, kubeconfig=kubeconfig, context=context)
