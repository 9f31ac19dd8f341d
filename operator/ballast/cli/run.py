"""`ballast run`: one replica of the operator."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import threading
from enum import StrEnum
from typing import Annotated

import typer

from ballast.api.duration import Duration
from ballast.cli.access import ContextOption, KubeconfigOption, connect
from ballast.controller.logs import configure
from ballast.controller.operator import Operator, Settings
from ballast.runtime import planning_runtime

EXAMPLES = (
    "ballast run --namespace ballast-system",
    "ballast run --kubeconfig admin.conf --log-format text",
)


class LogFormat(StrEnum):
    JSON = "json"
    TEXT = "text"


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def run(
    name: Annotated[str, typer.Option(help="Name of the lease and of the gate switch.", metavar="NAME")] = "ballast",
    namespace: Annotated[
        str | None, typer.Option(help="The operator's own. Default: that of the pod or the context.", metavar="NAME")
    ] = None,
    identity: Annotated[
        str | None,
        typer.Option(help="Unique name of this replica. Default: host name and process number.", metavar="NAME"),
    ] = None,
    lease_duration: Annotated[
        str, typer.Option(help="How long others wait for a silent leader, such as 15s.", metavar="DURATION")
    ] = "15s",
    host: Annotated[
        str | None,
        typer.Option(help="Where to serve health and metrics. Default: POD_IP, or everywhere.", metavar="ADDRESS"),
    ] = None,
    health_port: Annotated[int, typer.Option(help="Serves /healthz and /readyz.", metavar="PORT")] = 8080,
    metrics_port: Annotated[int, typer.Option(help="Serves /metrics.", metavar="PORT")] = 9464,
    log_format: Annotated[LogFormat, typer.Option(help="One line of JSON or of text per entry.")] = LogFormat.TEXT,
    log_level: Annotated[LogLevel, typer.Option(help="The least that is written.")] = LogLevel.INFO,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
) -> None:
    """Run one replica of the operator until it is told to stop (SIGTERM). The chart does this in its pods."""
    configure(as_json=log_format is LogFormat.JSON, level=logging.getLevelName(log_level.value.upper()))
    connection = connect(kubeconfig, context)
    settings = Settings(
        name=name,
        namespace=namespace or connection.namespace,
        identity=identity or f"{socket.gethostname()}-{os.getpid()}",
        host=host or os.environ.get("POD_IP") or "0.0.0.0",  # noqa: S104 -- probes come from outside of the pod
        health_port=health_port,
        metrics_port=metrics_port,
        lease_seconds=Duration.parse(lease_duration, "--lease-duration").seconds,
    )
    with planning_runtime():
        asyncio.run(_until_stopped(Operator(connection, settings)))
    leave()


def leave() -> None:
    """End the process at once where requests still hang: the interpreter would wait for their threads.

    All is said and done by then, and the pod would be killed in the middle of waiting.
    """
    if any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        logging.shutdown()
        os._exit(0)


async def _until_stopped(operator: Operator) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await operator.run(stop)
