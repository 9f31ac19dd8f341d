"""Where the reading commands look: at the cluster as the operator would see it now, or into a file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType
from rich.text import Text

from ballast.cli.access import ANYHOW, Access, address
from ballast.cli.situation import Situation, load
from ballast.errors import BallastError
from ballast.model import ConditionReason, PlacementMode

if TYPE_CHECKING:
    from ballast.controller.viewer import View
    from ballast.kube.client import Client
    from ballast.kube.document import JSON


class NotThatPolicyError(BallastError):
    """A file about another policy, or several policies where one is needed."""


FileOption = Annotated[
    Path | None,
    typer.Option("--filename", "-f", help="A snapshot file instead of a cluster; - is standard input.", metavar="FILE"),
]
PolicyOption = Annotated[str | None, typer.Option("--policy", "-p", help="Only this BalancingPolicy.", metavar="NAME")]
NamespaceOption = Annotated[
    str | None, typer.Option("--namespace", "-n", help="Default: the namespace of the context.", metavar="NAME")
]
AllNamespacesOption = Annotated[
    bool, typer.Option("--all-namespaces", "-A", help="All namespaces.", show_default=False)
]
PrometheusOption = Annotated[
    str | None,
    typer.Option(
        help="Ask this Prometheus, when the policies' own can't be reached from here.", metavar="URL", callback=address
    ),
]
SystemOption = Annotated[
    str, typer.Option(help="The operator's own namespace, where the secrets for Prometheus are.", metavar="NAME")
]
SYSTEM_NAMESPACE = "ballast-system"
_LEASE_NAME_PART = "ballast"
"""The chart's names have it, whatever the release is called."""
_LEASE_GRACE_SECONDS = 10.0
"""How far a user's clock may be off."""


FIRST_POLICY = """\
Create one with the address of your Prometheus. It covers all nodes, unless you add a nodeSelector:

kubectl apply -f - <<'EOF'
apiVersion: ballast.dev/v1alpha1
kind: BalancingPolicy
metadata: {name: streaming}
spec:
  metrics:
    prometheus: {url: "http://prometheus.monitoring:9090"}
EOF

It only recommends. Then ask again: `kubectl ballast status`, `kubectl ballast plan`.
"""
"""What to do where there is no policy yet."""
_FORWARD = "Is Prometheus out of reach from here only? Forward it (`kubectl port-forward`) and say --prometheus URL."


@dataclass(frozen=True, slots=True)
class Where:
    """What the options say about it."""

    file: Path | None = None
    access: Access = ANYHOW
    prometheus: str | None = None
    system_namespace: str = SYSTEM_NAMESPACE


def one_namespace(namespace: str | None, *, everywhere: bool) -> str | None:
    """Raises BadParameter for -n and -A together."""
    if everywhere and namespace is not None:
        raise typer.BadParameter("say -n or -A, not both", param_hint="--all-namespaces")
    return namespace


@dataclass(frozen=True, slots=True)
class Seen:
    situations: tuple[Situation, ...]
    problems: tuple[str, ...] = ()
    namespace: str | None = None
    """Of the kubeconfig's context; None for a file."""
    view: View | None = None

    only_namespace: str | None = None
    """Whose topologies and moves are shown; None shows those of all."""
    from_file: bool = False
    operator_runs: bool | None = None
    """Whether its lease is held; None for a file, or where leases may not be read."""
    system_namespace: str = SYSTEM_NAMESPACE


Look = Callable[[str | None], Seen]
"""Looks once more, at one policy or at all of them."""


@contextmanager
def source(where: Where) -> Iterator[Look]:
    """Raises BallastError, here or while looking, with what to do about it."""
    if where.file is not None:
        yield _kept(load(where.file), where.file)
        return
    with _cluster(where) as look:
        yield look


@contextmanager
def _cluster(where: Where) -> Iterator[Look]:
    from ballast.controller.viewer import NoPolicyError, Viewer  # noqa: PLC0415 -- slow to load, unused for a file

    connection = where.access.connect()
    client = where.access.client(connection)
    viewer = Viewer(client, clock=time.time, namespace=where.system_namespace, prometheus=where.prometheus)

    def look(policy: str | None) -> Seen:
        try:
            view = viewer.look(policy)
        except NoPolicyError as error:
            error.add_note(FIRST_POLICY)
            raise
        switches = _switches(client)
        refused = resting_words(switches, time.time())
        situations = tuple(
            Situation(seen.policy, seen.memory, replace(seen.snapshot, ungated_namespaces=refused))
            for seen in view.contexts
        )
        runs = _operator_runs(client, where.system_namespace)
        return Seen(
            situations,
            (*view.problems, *_stopped(view), *_switched_off(switches, situations), *sorted(refused.values())),
            connection.namespace,
            view,
            operator_runs=runs,
            system_namespace=where.system_namespace,
        )

    try:
        yield look
    finally:
        viewer.close()
        client.close()


def _operator_runs(client: Client, namespace: str) -> bool | None:
    """As in Seen."""
    from ballast.kube.errors import Forbidden  # noqa: PLC0415 -- slow to load, unused for a file
    from ballast.kube.lease import somebody_leads  # noqa: PLC0415 -- as above

    now, part = time.time(), _LEASE_NAME_PART
    try:
        return somebody_leads(client, namespace=namespace, name_part=part, now=now, grace_seconds=_LEASE_GRACE_SECONDS)
    except Forbidden:
        return None


def _stopped(view: View) -> list[str]:
    names = [each.name for each in view.contexts if each.read.resource.spec.stopped]
    return [
        f"BalancingPolicy {name} is stopped, so it gates, places and moves nothing: kubectl ballast start"
        for name in names
    ]


def _switches(client: Client) -> list[JSON]:
    """None where they may not be read, or there is no such kind."""
    from ballast.kube import kinds  # noqa: PLC0415 -- slow to load, unused for a file
    from ballast.kube.errors import Forbidden, NotFound  # noqa: PLC0415 -- as above
    from ballast.kube.objects import Query, read_list  # noqa: PLC0415 -- as above

    try:
        return read_list(client, Query(kinds.GATE_SWITCH), lambda found: found).items
    except (Forbidden, NotFound):
        return []


def resting_words(switches: Iterable[JSON], now: float) -> dict[str, str]:
    """By namespace, why executors are not gated for now."""
    from ballast.controller.breaker import lasting, refused_words, rests_of  # noqa: PLC0415 -- unused for a file

    rests = [rest for each in switches for rest in rests_of(each.get("status") or {})]
    return {name: refused_words(rest) for name, rest in lasting(rests, now).items()}


def _switched_off(switches: Sequence[JSON], situations: Sequence[Situation]) -> list[str]:
    """Gate switches that stay off although a policy enforces placement.

    None where a release acts: an uninstallation of another one leaves its switch behind.
    """
    from ballast.controller.switch import LEADING, UNINSTALLED  # noqa: PLC0415 -- slow to load, unused for a file

    enforcing = [each.policy.name for each in situations if each.policy.placement.mode is PlacementMode.ENFORCE]
    if not enforcing:
        return []
    reasons = {s["metadata"]["name"]: (s.get("status") or {}).get("reason") for s in switches}
    off = [] if LEADING in reasons.values() else [name for name, reason in reasons.items() if reason == UNINSTALLED]
    return [
        f"GateSwitch {name}: `ballast release --all` turned it off, so no new executor is gated although "
        f"{', '.join(enforcing)} enforce placement: restart the operator's Deployment"
        for name in off
    ]


def look_once(where: Where, policy: str | None = None) -> Seen:
    with source(where) as look:
        return look(policy)


def _kept(situation: Situation, file: Path) -> Look:
    def look(policy: str | None) -> Seen:
        if policy not in (None, situation.policy.name):
            raise NotThatPolicyError(f"{file} is about BalancingPolicy {situation.policy.name}, not about {policy}")
        return Seen((situation,), from_file=True)

    return look


def problem_lines(seen: Seen) -> list[RenderableType]:
    """What keeps pools from being seen, and what helps: lines for people, to end a report with."""
    problems = [Text.assemble(("Problem ", "red"), problem, overflow="fold") for problem in seen.problems]
    unreachable = any(each.snapshot.metrics.reason is ConditionReason.UNREACHABLE for each in seen.situations)
    # A file's metrics may have been queried from another place.
    advice = [Text(), Text(_FORWARD, style="dim")] if unreachable and not seen.from_file else []
    return [*problems, *advice]
