"""The gating switch, and letting go of pods whose gate nobody serves. Works in every replica and without one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ballast.api import BalancingPolicy
from ballast.controller.gateclock import GateClock
from ballast.kube import actions, kinds
from ballast.kube.client import Client
from ballast.kube.errors import Conflict, NotFound
from ballast.kube.lists import Query, read_list
from ballast.kube.objects import gate_switch, set_gate_switch
from ballast.kube.pods import Pod, PodReader
from ballast.kube.timestamp import seconds, text
from ballast.model import Levels, Pin, Placement, PlacementMode, Reason

HEARTBEAT_SECONDS = 30.0
UNINSTALLED = "Uninstalled"
"""Reason of a switch that was turned off because Ballast is being removed."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the switch should say."""

    gating: bool
    namespaces: tuple[str, ...] = ()
    all_namespaces: bool = False

    def spec(self) -> dict[str, Any]:
        return {"gating": self.gating, "allNamespaces": self.all_namespaces, "namespaces": list(self.namespaces)}


def wanted(policies: Iterable[BalancingPolicy], namespaces: Mapping[str, Mapping[str, str]]) -> Wanted:
    """On in the namespaces where some policy enforces placement, and nowhere else."""
    enforcing = [p.spec for p in policies if p.spec.placement.mode.value == PlacementMode.ENFORCE.value]
    if any(spec.namespace_selector.is_empty for spec in enforcing):
        return Wanted(gating=True, all_namespaces=True)
    chosen = sorted(
        name for name, labels in namespaces.items() if any(s.namespace_selector.matches(labels) for s in enforcing)
    )
    return Wanted(gating=bool(chosen), namespaces=tuple(chosen))


class Switch:
    """Keeps the one GateSwitch. `clock`: seconds since the epoch."""

    def __init__(self, client: Client, *, name: str, identity: str, clock: Callable[[], float]) -> None:
        self._client, self._name, self._identity, self._clock = client, name, identity, clock
        self._kept: Wanted | None = None
        self._beaten_at = 0.0
        self._began_at = clock()

    def keep(self, want: Wanted) -> None:
        """Make the switch say `want`; written when it changes, and every half a minute as a sign of life.

        A switch that an uninstallation has turned off since this process began stays off: whoever is about to be
        removed must not begin to hold executors again.
        """
        now = self._clock()
        if want == self._kept and now - self._beaten_at < HEARTBEAT_SECONDS:
            return
        if self._uninstalled():
            self._kept = None
            return
        status = {"leader": self._identity, "heartbeatTime": text(now), "reason": "Leading"}
        try:
            set_gate_switch(self._client, want.spec(), status=status, name=self._name)
        except Conflict:
            self._kept = None
            return
        self._kept, self._beaten_at = want, now

    def _uninstalled(self) -> bool:
        status = (gate_switch(self._client, self._name) or {}).get("status") or {}
        at = seconds(status.get("heartbeatTime"))
        return status.get("reason") == UNINSTALLED and at is not None and at >= int(self._began_at)

    def off(self, reason: str) -> None:
        """New executors are not held any more. Does nothing when there is no switch."""
        self._kept = None
        if gate_switch(self._client, self._name) is None:
            return
        status = {"leader": self._identity, "heartbeatTime": text(self._clock()), "reason": reason}
        set_gate_switch(self._client, Wanted(gating=False).spec(), status=status, name=self._name)


class StaleGates:
    """Releases, as they are, pods that wait longer than anybody should make them wait.

    A pod that is no executor is not made to wait at all: our gate came with a template that it shares.
    """

    def __init__(self, client: Client, *, clock: Callable[[], float]) -> None:
        self._client, self._clock = client, clock
        self._reader = PodReader()
        self._gates = GateClock()

    def look(self) -> list[Pod]:
        """The pods that our gate holds; from now on it is known since when ours is their last."""
        query = Query(kinds.POD, fields="status.phase=Pending")
        pods = [pod for pod in read_list(self._client, query, self._reader.read).items if pod.held and not pod.leaving]
        self._gates = self._gates.after(pods, self._clock())
        return pods

    def release(self, *, older_than_seconds: float) -> list[actions.ReleaseOutcome]:
        """Release those whose last gate has been ours for so long, and those that are no executors."""
        now = self._clock()
        due = [pod for pod in self.look() if pod.executor is None or self._waited(pod, now) >= older_than_seconds]
        return actions.release_many(self._client, [order for pod in due if (order := _order(pod))], Levels(()))

    def release_all(self) -> list[actions.ReleaseOutcome]:
        """Release everybody, also those that others still hold: our gate goes, theirs stay."""
        return actions.release_many(self._client, [order for pod in self.look() if (order := _order(pod))], Levels(()))

    def _waited(self, pod: Pod, now: float) -> float:
        since = self._gates.alone_since.get(pod.uid)
        return -1.0 if since is None else now - since


def _order(pod: Pod) -> actions.Release | None:
    as_it_is = Placement(pod.key, pod.uid, None, (), Pin.NONE, Reason.GATE_TIMEOUT, "nobody placed it in time")
    return actions.order(pod, as_it_is)


def lease_is_stale(client: Client, *, namespace: str, name: str, now: float, grace_seconds: float) -> bool:
    """Whether nobody has renewed the leader's lease for its duration and a grace; also when there is none."""
    try:
        lease = client.get(kinds.LEASE, name, namespace=namespace)
    except NotFound:
        return True
    spec = lease.get("spec") or {}
    if not spec.get("holderIdentity") or not spec.get("renewTime"):
        return True
    renewed = datetime.fromisoformat(spec["renewTime"]).timestamp()
    return now - renewed > float(spec.get("leaseDurationSeconds") or 0) + grace_seconds
