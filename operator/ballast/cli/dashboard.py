"""`ballast dashboard`: the pools as a live page on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
import webbrowser
from typing import Annotated

import typer

from ballast.cli.access import ANYHOW, Access, reads_cluster
from ballast.cli.source import (
    SYSTEM_NAMESPACE,
    FileOption,
    Look,
    PolicyOption,
    PrometheusOption,
    Seen,
    SystemOption,
    Where,
    source,
)
from ballast.cli.watch import EVERY_SECONDS, EveryOption
from ballast.errors import BallastError

EXAMPLES = (
    "kubectl ballast dashboard",
    "kubectl ballast dashboard -p streaming --port 8080 --no-browser",
    "kubectl ballast dashboard --prometheus http://localhost:9090",
    "ballast dashboard -f snapshot.yaml",
)


_AGAIN_SECONDS = 60.0
"""How often all is placed again, to show what that would change: in large pools it takes seconds."""


def one_at_a_time(look: Look) -> Look:
    """Each path is answered by its own thread, and what looks at a cluster is not safe for threads."""
    lock = threading.Lock()

    def locked(policy: str | None) -> Seen:
        with lock:
            return look(policy)

    return locked


class PortTakenError(BallastError):
    """Another program listens there."""


@reads_cluster
def dashboard(
    policy: PolicyOption = None,
    port: Annotated[int, typer.Option(help="Port of this machine; 0 takes a free one.", min=0, max=65535)] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
    every: EveryOption = EVERY_SECONDS,
    filename: FileOption = None,
    prometheus: PrometheusOption = None,
    system_namespace: SystemOption = SYSTEM_NAMESPACE,
    access: Access = ANYHOW,
) -> None:
    """Show pools as a page: nodes by zone and rack with their executors, topologies, moves, and what is not placed.

    The page is for this machine alone and changes nothing. It asks with your own rights, and only while it is open.
    Ends with Ctrl-C.
    """
    # What it needs is slow to load, and no other command does.
    from ballast.cli.console.server import Answers, console, serve  # noqa: PLC0415
    from ballast.cli.console.state import placed_again, state  # noqa: PLC0415

    def started(address: str) -> None:
        typer.echo(f"The dashboard is at {address} until Ctrl-C.")
        if browser:
            webbrowser.open(address)

    with (
        source(Where(filename, access, prometheus, system_namespace)) as unsafe,
        contextlib.suppress(KeyboardInterrupt),
    ):
        look = one_at_a_time(unsafe)
        answers = {
            "/state": Answers(lambda: state(look(policy)), every_seconds=every, clock=time.monotonic),
            "/again": Answers(lambda: placed_again(look(policy)), every_seconds=_AGAIN_SECONDS, clock=time.monotonic),
        }
        try:
            asyncio.run(serve(console(answers), port, started=started))
        except OSError as error:
            words = f"port {port} of this machine can't be used: {error.strerror}; leave out --port for a free one"
            raise PortTakenError(words) from error
