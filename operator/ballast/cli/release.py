"""`ballast release`: let held executors go, with no operator at hand."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from ballast.cli.access import ContextOption, KubeconfigOption, connect
from ballast.controller.operator import STALE_AFTER_SECONDS
from ballast.controller.stale import StaleGates
from ballast.controller.switch import UNINSTALLED, Switch
from ballast.kube.actions import Released, ReleaseOutcome
from ballast.kube.client import Client
from ballast.kube.lease import lease_is_stale

EXAMPLES = (
    "ballast release --stale --namespace ballast-system",
    "ballast release --all",
)


_LEASE_GRACE_SECONDS = 4.0
_PROPAGATION_SECONDS = 3.0
"""Until every API server has surely seen that the switch is off; nothing tells when that is."""


def release(
    stale: Annotated[bool, typer.Option("--stale", help="Those that wait longer than the gate timeout.")] = False,
    everybody: Annotated[bool, typer.Option("--all", help="Everybody, and turn the switch off first.")] = False,
    name: Annotated[str, typer.Option(help="Name of the lease and of the gate switch.")] = "ballast",
    namespace: Annotated[str | None, typer.Option(help="The operator's own namespace.")] = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
) -> None:
    """Release executors that Ballast's gate holds, as they are.

    With --stale the switch is turned off as well if nobody leads, so that no new executor is held.
    """
    if stale == everybody:
        raise typer.BadParameter("say --stale or --all", param_hint="--stale/--all")
    connection = connect(kubeconfig, context)
    client = Client(connection)
    try:
        switch = Switch(client, name=name, identity="ballast-release", clock=time.time)
        gates = StaleGates(client, clock=time.time)
        if everybody:
            switch.off(UNINSTALLED)
            outcomes = gates.release_all()
            time.sleep(_PROPAGATION_SECONDS)
            outcomes += gates.release_all()
        else:
            outcomes = _release_stale(client, switch, gates, namespace=namespace or connection.namespace, name=name)
    finally:
        client.close()
    _tell(outcomes)


def _release_stale(
    client: Client, switch: Switch, gates: StaleGates, *, namespace: str, name: str
) -> list[ReleaseOutcome]:
    if lease_is_stale(client, namespace=namespace, name=name, now=time.time(), grace_seconds=_LEASE_GRACE_SECONDS):
        switch.off("LeaseStale")
        typer.echo("nobody leads: the gate switch is off")
        return gates.release(older_than_seconds=0.0)
    return gates.release(older_than_seconds=STALE_AFTER_SECONDS)


def _tell(outcomes: list[ReleaseOutcome]) -> None:
    released = sum(isinstance(outcome, Released) for outcome in outcomes)
    typer.echo(f"released {released} of {len(outcomes)} executors")
    if released < len(outcomes):
        raise typer.Exit(1)
