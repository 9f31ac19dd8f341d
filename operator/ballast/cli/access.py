"""How a command reaches the cluster: as kubectl does."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ballast.errors import InvalidField

if TYPE_CHECKING:
    from ballast.kube.client import Client, Limits
    from ballast.kube.clock import ServerClock
    from ballast.kube.connection import Connection


def _kubeconfig(path: Path | None) -> Path | None:
    """Raises InvalidField for a file that is not there."""
    if path is not None and not path.expanduser().is_file() and os.pathsep not in str(path):
        why = "Is a directory" if path.is_dir() else "No such file or directory"
        raise InvalidField("--kubeconfig", str(path), f"{why}; name a kubeconfig file")
    return path


KubeconfigOption = Annotated[
    Path | None,
    typer.Option(
        help="Default: KUBECONFIG, the pod's own account, or ~/.kube/config.", metavar="FILE", callback=_kubeconfig
    ),
]
ContextOption = Annotated[
    str | None, typer.Option(help="Context in the kubeconfig file. Default: the current one.", metavar="NAME")
]

_SPAN = re.compile(r"(?=\d)(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s?)?")


def _span(option: typer.CallbackParam, text: str | None) -> str | None:
    """Raises BadParameter."""
    del option
    if text is not None and not _SPAN.fullmatch(text):
        raise typer.BadParameter(f"{text!r}: write a duration such as 30s, 2m or 1m30s; 0 waits without end")
    return text


AsOption = Annotated[
    str | None, typer.Option("--as", help="User to impersonate, such as a service account.", metavar="USER")
]
RequestTimeoutOption = Annotated[
    str | None,
    typer.Option(
        "--request-timeout",
        help="How long to wait for an answer of the API server, such as 30s; 0 waits without end.",
        metavar="DURATION",
        callback=_span,
    ),
]


@dataclass(frozen=True, slots=True)
class Access:
    """What the options say about it."""

    kubeconfig: Path | None = None
    context: str | None = None
    user: str | None = None
    """To impersonate."""
    request_seconds: float | None = None
    """Of one request, which then is not repeated; 0 waits without end."""

    def connect(self) -> Connection:
        """Raises NotConnected with what to set."""
        found = connect(self.kubeconfig, self.context)
        return replace(found, impersonated=self.user) if self.user else found

    def client(self, connection: Connection, *, clock: ServerClock | None = None) -> Client:
        """`clock`: hears of every answer."""
        from ballast.kube.client import Client  # noqa: PLC0415 -- slow to load, unused for a file

        return Client(connection, self.limits, clock=clock)

    @property
    def options(self) -> list[str]:
        """The same for kubectl."""
        given = {
            "kubeconfig": self.kubeconfig,
            "context": self.context,
            "as": self.user,
            "request-timeout": None if self.request_seconds is None else f"{self.request_seconds:g}s",
        }
        return [f"--{name}={value}" for name, value in given.items() if value is not None]

    @property
    def limits(self) -> Limits:
        from ballast.kube.client import Limits  # noqa: PLC0415 -- slow to load, unused for a file

        usual = Limits()
        if self.request_seconds is None:
            return usual
        seconds = self.request_seconds or None
        connect_seconds = min(usual.connect_seconds, seconds or usual.connect_seconds)
        return replace(usual, connect_seconds=connect_seconds, read_seconds=seconds, answer_seconds=seconds, attempts=1)


ANYHOW = Access()
"""As kubectl does with no options."""


def reads_cluster(command: Callable[..., None]) -> Callable[..., None]:
    """`command` with kubectl's options for the connection, from which its parameter `access` is made."""
    own = inspect.signature(command, eval_str=True)
    shared = inspect.signature(_access, eval_str=True).parameters

    @wraps(command)
    def called(**values: Any) -> None:
        access = _access(**{name: values.pop(name) for name in shared})
        command(**values, access=access)

    parameters = [each for each in own.parameters.values() if each.name != "access"] + list(shared.values())
    # typer reads both.
    called.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {each.name: each.annotation for each in parameters}
    return called


def _access(
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    user: AsOption = None,
    request_timeout: RequestTimeoutOption = None,
) -> Access:
    return Access(kubeconfig, context, user, None if request_timeout is None else _seconds(request_timeout))


def _seconds(text: str) -> float:
    found = _SPAN.fullmatch(text)
    hours, minutes, seconds = (int(part or 0) for part in found.groups()) if found else (0, 0, 0)
    return 3600.0 * hours + 60.0 * minutes + seconds


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
