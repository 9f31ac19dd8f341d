"""`ballast release`: release gated executors when no operator runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated

import typer

from ballast.cli.access import ANYHOW, Access, reads_cluster
from ballast.controller.gateclock import STALE_AFTER_SECONDS, StaleGates
from ballast.controller.other_releases import acting_instead
from ballast.controller.switch import UNINSTALLED, Switch
from ballast.kube import kinds
from ballast.kube.actions import Changed, Deleted, Refused, Released, ReleaseOutcome
from ballast.kube.client import Client
from ballast.kube.clock import ServerClock
from ballast.kube.connection import Connection
from ballast.kube.errors import KubeError, NotFound
from ballast.kube.lease import lease_is_stale
from ballast.kube.template_gates import MOST_NAMED, GatedPod, gated_pods, template_gates

Outcomes = dict[str, ReleaseOutcome | Deleted]

EXAMPLES = (
    "ballast release --stale --namespace ballast-system",
    "ballast release --all",
)


_NOT_OF_HELM = (
    "nothing was done: Helm did not create the Job {}, so this is no uninstallation; delete the Job, and render the "
    "chart with --no-hooks. To release all executors and stop gating: ballast release --all"
)
_LEASE_GRACE_SECONDS = 4.0
_LONGEST_REASON_CHARACTERS = 500
_OTHERS_SECONDS = STALE_AFTER_SECONDS + 0.5
"""So long another release of Ballast has to release the executors that it has gated."""
_PROPAGATION_SECONDS = 3.0
"""Until every API server has surely seen that the switch is off; nothing tells when that is."""


@reads_cluster
def release(
    stale: Annotated[
        bool,
        typer.Option("--stale", help="Executors gated for longer than any gate timeout; all, if there is no leader."),
    ] = False,
    everybody: Annotated[
        bool, typer.Option("--all", help="All executors, also those with other gates; turns the switch off first.")
    ] = False,
    name: Annotated[str, typer.Option(help="Name of the lease and of the gate switch.", metavar="NAME")] = "ballast",
    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace",
            "-n",
            help="The operator's own. Default: that of the pod or the context.",
            metavar="NAME",
        ),
    ] = None,
    hook: Annotated[
        str | None,
        typer.Option(help="Do nothing unless Helm created this Job, in the operator's namespace.", metavar="JOB"),
    ] = None,
    unless_led: Annotated[
        bool, typer.Option("--unless-led", help="With --stale: do nothing while an operator leads.")
    ] = False,
    access: Access = ANYHOW,
) -> None:
    """Release executors that Ballast's gate holds, as they are: kube-scheduler places them.

    For when no operator runs. With --stale, the gate switch is also turned off if there is no leader, so that no new
    executor is gated. After --all, a running operator gates no executors: restart its Deployment to gate executors
    again. While another release of Ballast acts in the cluster, only executors are released that it has left gated for
    longer than any gate timeout; name that release (--name) to release its executors. Exits with 1 if an executor is
    still gated, or the switch could not be turned off.
    """
    if stale == everybody:
        raise typer.BadParameter("say --stale or --all", param_hint="--stale/--all")
    if unless_led and not stale:
        raise typer.BadParameter("it goes with --stale", param_hint="--unless-led")
    connection = access.connect()
    client = access.client(connection)
    try:
        if hook is not None and not _of_helm(client, hook, namespace=namespace or connection.namespace):
            typer.echo(_NOT_OF_HELM.format(hook))
            return
        clock = _server_clock(connection, access)
        switch = Switch(client, name=name, identity="ballast-release", clock=clock, monotonic=time.monotonic)
        gates = StaleGates(client, clock=clock, rest=switch.rest)
        if everybody:
            # Asked before the switch is turned off: of two that are on, one acts.
            other = _acting_instead(client, name)
            is_off = _turned_off(switch, UNINSTALLED, "the gate switch is off: restart the Deployment to gate again")
            # A gate that was removed leaves no trace of where it came from.
            gated_before = _gated(client)
            outcomes = _twice(gates.release_all, always=True) if other is None else _release_left_by(other, gates)
            # After it: reading what users have written must not keep executors gated.
            _warn(client, gated_before)
        elif lease_is_stale(
            client,
            namespace=namespace or connection.namespace,
            name=name,
            now=clock(),
            grace_seconds=_LEASE_GRACE_SECONDS,
        ):
            other = _acting_instead(client, name)
            is_off = _turned_off(switch, "LeaseStale", "no leader elected: the gate switch is off")
            outcomes = _stale(gates, 0.0 if other is None else STALE_AFTER_SECONDS)
        elif unless_led:
            typer.echo("an operator leads: nothing to do")
            return
        else:
            is_off, outcomes = True, _stale(gates, STALE_AFTER_SECONDS)
    finally:
        client.close()
    _tell(outcomes)
    if not is_off:
        raise typer.Exit(1)


def _server_clock(connection: Connection, access: Access) -> ServerClock:
    """The API server's: by a node's clock that is an hour ahead, every leader would be gone and every gate overdue."""
    clock = ServerClock(time.time)
    asking = access.client(connection, clock=clock)
    try:
        asking.version()
    except KubeError:
        """The lease can't be read either, then."""
    finally:
        asking.close()
    return clock


def _acting_instead(client: Client, name: str) -> str | None:
    """Another release of Ballast that acts. Nothing that can't be read must block the executors' release."""
    try:
        return acting_instead(client, name)
    except KubeError as error:
        typer.echo(f"whether another release of Ballast acts in this cluster is not known: {error}", err=True)
        return None


def _twice(release: Callable[..., Outcomes], *, always: bool = False) -> Outcomes:
    """Retry what could not be released at first, and delete executors whose release is refused again.

    `always`: retry also where nothing was refused, since other API servers may have gated some meanwhile.
    """
    first = release(replace=False)
    if not always and not gated(first):
        return first
    time.sleep(_PROPAGATION_SECONDS)
    return {pod: each for pod, each in first.items() if isinstance(each, Released | Deleted)} | release(replace=True)


def _stale(gates: StaleGates, older_than_seconds: float) -> Outcomes:
    return _twice(partial(gates.release, older_than_seconds=older_than_seconds))


def _release_left_by(other: str, gates: StaleGates) -> Outcomes:
    """Release those executors that the other release of Ballast does not. Pods do not show which one gated them."""
    typer.echo(
        f"the Ballast release {other} acts in this cluster, and has {_OTHERS_SECONDS:.0f} s to place its executors; "
        f"those that are still gated then are released. To release all of them, say --name {other}"
    )
    gates.look()
    time.sleep(_OTHERS_SECONDS)
    return _stale(gates, STALE_AFTER_SECONDS)


def _of_helm(client: Client, job: str, *, namespace: str) -> bool:
    """Whether a Helm client created the Job: helm itself, or a program that is built on it, such as helm-controller.

    Helm runs its pre-delete hook while the Deployment still exists, just as `kubectl apply` of a rendered chart does:
    only the Job's own field managers tell the two apart.
    """
    try:
        found = client.get(kinds.JOB, job, namespace=namespace)
    except NotFound:
        return False
    entries = found["metadata"].get("managedFields") or ()
    return any("helm" in (entry.get("manager") or "").lower() for entry in entries if not entry.get("subresource"))


def _gated(client: Client) -> list[GatedPod]:
    """None where they can't be listed: the release lists pods, too, and fails with the same reason."""
    try:
        return gated_pods(client)
    except KubeError:
        return []


def _warn(client: Client, gated_before: list[GatedPod]) -> None:
    """Tell of applications whose executors will be gated again. Nothing that can't be read must fail a release."""
    try:
        told = template_gates(client, gated_before).warnings()
    except KubeError as error:
        told = [f"applications with the gate in a pod template are not known: {error}"]
    for words in told:
        typer.echo(f"Warning: {words}", err=True)


def _turned_off(switch: Switch, reason: str, words: str) -> bool:
    """A failed write of the switch must not block releasing pods that are already gated."""
    try:
        switch.off(reason)
    except KubeError as error:
        typer.echo(f"the gate switch could not be turned off: {error}; run the command again", err=True)
        return False
    typer.echo(words)
    return True


def _tell(outcomes: Mapping[str, ReleaseOutcome | Deleted]) -> None:
    """Of very many that are still gated, some are named: a user's webhook may refuse the release of thousands."""
    left = gated(outcomes)
    released = sum(isinstance(outcome, Released) for outcome in outcomes.values())
    deleted = sum(isinstance(outcome, Deleted) for outcome in outcomes.values())
    typer.echo(f"released {released} of {released + len(left) + deleted} executors")
    if deleted:
        typer.echo(f"deleted {deleted} whose release is refused: their successors are not gated")
    told = sorted(left.items())[:MOST_NAMED]
    for pod, why in told:
        typer.echo(f"{pod} is still gated: {why[:_LONGEST_REASON_CHARACTERS]}", err=True)
    if len(left) > len(told):
        typer.echo(f"so are {len(left) - len(told)} more", err=True)
    if left:
        typer.echo("run the command again, or delete those pods", err=True)
        raise typer.Exit(1)


def gated(outcomes: Mapping[str, ReleaseOutcome | Deleted]) -> dict[str, str]:
    """Which were not released, and why. A pod that is gone needs no release."""
    return {pod: outcome.detail for pod, outcome in outcomes.items() if isinstance(outcome, Changed | Refused)}
