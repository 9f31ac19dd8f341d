"""`ballast stop` and `ballast start`: the one switch that stops all that policies do, and its way back."""

from __future__ import annotations

from typing import Annotated

import typer

from ballast.cli.access import ANYHOW, Access, reads_cluster
from ballast.errors import InvalidField
from ballast.kube import kinds
from ballast.kube.client import Client
from ballast.kube.objects import Query, read_list

EXAMPLES = (
    "kubectl ballast stop",
    "kubectl ballast stop --policy streaming",
    "kubectl ballast start",
)
PolicyOption = Annotated[
    str | None, typer.Option("--policy", "-p", help="Only this BalancingPolicy. Default: all.", metavar="NAME")
]


@reads_cluster
def stop(policy: PolicyOption = None, access: Access = ANYHOW) -> None:
    """Stop policies: they gate, place, nominate and move nothing, not even approved moves.

    Gated executors are released as they are. What has been moved or placed stays. It writes spec.stopped: a program
    that keeps your policies as in a repository turns it back, so suspend it, or write the field there.
    """
    _write(access, policy, stopped=True)


@reads_cluster
def start(policy: PolicyOption = None, access: Access = ANYHOW) -> None:
    """Start stopped policies again: their modes count as before."""
    _write(access, policy, stopped=False)


def _write(access: Access, policy: str | None, *, stopped: bool) -> None:
    connection = access.connect()
    client = access.client(connection)
    try:
        found = _policies(client, policy)
        for name, before in found.items():
            if before is not stopped:
                client.patch(kinds.BALANCING_POLICY, name, {"spec": {"stopped": stopped}})
            changed = "" if before is not stopped else " already"
            typer.echo(f"BalancingPolicy {name} is{changed} {'stopped' if stopped else 'started'}")
        if not found:
            typer.echo("there is no BalancingPolicy")
    finally:
        client.close()


def _policies(client: Client, only: str | None) -> dict[str, bool]:
    """Whether each is stopped, by name. Raises InvalidField if there is none of that name."""
    listed = read_list(client, Query(kinds.BALANCING_POLICY), lambda item: item).items
    found = {each["metadata"]["name"]: bool(each["spec"].get("stopped")) for each in listed}
    if only is None:
        return found
    if only not in found:
        raise InvalidField("--policy", only, f"there is no such BalancingPolicy; there is {', '.join(found) or 'none'}")
    return {only: found[only]}
