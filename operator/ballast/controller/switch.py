"""The gating switch: whether, and where, new executors are held."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ballast.controller import breaker
from ballast.controller.breaker import Rest
from ballast.kube.client import Client
from ballast.kube.clock import MOST_AHEAD_SECONDS
from ballast.kube.document import JSON, seconds, text
from ballast.kube.errors import Conflict, KubeError
from ballast.kube.kinds import GATE_SWITCH
from ballast.kube.objects import difference, gate_switch, set_gate_switch, write_status
from ballast.model import KUBE_SCHEDULER, PlacementMode

if TYPE_CHECKING:
    from ballast.api import BalancingPolicy

_LOG = logging.getLogger(__name__)
COMPARE_SECONDS = 60.0
"""How often the switch is read, in case another program turned it."""
MOST_NAMESPACES = 2000
"""That a switch can name; executors of further ones are not held."""
_SCHEDULERS = 100
"""That a switch can name."""
LEADING = "Leading"
"""Reason of a switch whose release acts."""
ASIDE = "AnotherRelease"
"""Reason of a switch whose release stands aside for another one."""
UNINSTALLED = "Uninstalled"
"""Reason of a switch that was turned off because Ballast is being removed."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the switch should say."""

    gating: bool
    namespaces: tuple[str, ...] = ()
    all_namespaces: bool = False
    scheduler_names: tuple[str, ...] = (KUBE_SCHEDULER,)

    def spec(self, resting: Iterable[str] = ()) -> dict[str, Any]:
        """`resting`: namespaces whose executors are not gated for now."""
        resting = sorted(resting)
        return {
            "gating": self.gating,
            "allNamespaces": self.all_namespaces,
            "namespaces": [each for each in self.namespaces if each not in resting],
            "schedulerNames": list(self.scheduler_names),
            "restingNamespaces": resting,
        }


def wanted(policies: Iterable[BalancingPolicy], namespaces: Mapping[str, Mapping[str, str]]) -> Wanted:
    """On in the namespaces where some policy enforces placement, and nowhere else."""
    enforcing = [p.spec for p in policies if p.spec.placement.mode.value == PlacementMode.ENFORCE.value]
    named = {name for spec in enforcing for name in spec.placement.scheduler_names} or {KUBE_SCHEDULER}
    schedulers = tuple(sorted(named)[:_SCHEDULERS])
    if any(spec.namespace_selector.is_empty for spec in enforcing):
        return Wanted(gating=True, all_namespaces=True, scheduler_names=schedulers)
    chosen = sorted(
        name for name, labels in namespaces.items() if any(s.namespace_selector.matches(labels) for s in enforcing)
    )
    return Wanted(gating=bool(chosen), namespaces=tuple(chosen[:MOST_NAMESPACES]), scheduler_names=schedulers)


class Switch:
    """Keeps this release's GateSwitch. `clock`: seconds since the epoch; `monotonic`: seconds that are never set back.

    The age of this process is counted by the latter, because `clock` may be corrected after the process began.
    `pod_created_at`: seconds since the epoch, if this process runs in a pod. Its container may be started again.
    """

    def __init__(
        self,
        client: Client,
        *,
        name: str,
        identity: str,
        clock: Callable[[], float],
        monotonic: Callable[[], float],
        pod_created_at: Callable[[], float | None] = lambda: None,
    ) -> None:
        self._client, self._name, self._identity, self._clock = client, name, identity, clock
        self._pod_created_at = pod_created_at
        self._kept: Wanted | None = None
        self._compared_at = 0.0
        self._monotonic, self._began = monotonic, monotonic()
        self.stays_off = False
        """Whether an uninstallation or a user has turned it off since this operator began."""
        self.rests: Mapping[str, Rest] = {}
        """By namespace, where executors are not gated for now. Replaced as a whole: other threads read it."""
        self._changed = False
        """Another thread has written it since it was last read."""

    def keep(self, want: Wanted) -> None:
        """Make the switch say `want`; it is read now and then, and written only where it says something else.

        A switch that an uninstallation has turned off since this operator began stays off: one that is about to be
        removed must not gate executors again, also if its container fails meanwhile. The log says so once.
        """
        now = self._clock()
        ended = any(not each.lasts(now) for each in self.rests.values())
        # The wall clock may have stepped backwards.
        recent = 0 <= now - self._compared_at < COMPARE_SECONDS
        if want == self._kept and recent and not (ended or self._changed):
            return
        self._changed = False
        # A write that fails is tried again at once: the definition may have been deleted, and be applied again.
        self._kept = None
        seen = gate_switch(self._client, self._name) or {}
        if self._uninstalled(seen):
            self._tell()
            return
        rests = breaker.after(breaker.rests_of(seen.get("status") or {}), {}, now)
        self.rests = breaker.lasting(rests, now)
        if not self._says(seen, want):
            try:
                status = self._status(LEADING, rests)
                set_gate_switch(self._client, want.spec(self.rests), status=status, name=self._name, seen=seen)
            except Conflict:
                return
        self._kept, self._compared_at, self.stays_off = want, now, False

    def _says(self, seen: JSON, want: Wanted) -> bool:
        status = seen.get("status") or {}
        said = (status.get("leader"), status.get("reason"))
        same = not difference(seen.get("spec") or {}, want.spec(self.rests))
        return bool(seen) and same and said == (self._identity, LEADING)

    def rest(self, refused: Mapping[str, str]) -> dict[str, float]:
        """Gate no executors in these namespaces for a while, whose releases were refused with these answers.

        From any thread, and in any replica. Returns since when executors of each are not gated, as far as the switch
        says so now: what was created later has its gate from a pod template.
        """
        try:
            return self._rested(refused)
        except KubeError as error:
            _LOG.warning("the gate switch stays as it is, although releases are refused: %s", error)
            return {}

    def _rested(self, refused: Mapping[str, str]) -> dict[str, float]:
        seen = gate_switch(self._client, self._name)
        if seen is None:
            return {}
        now, status, spec = self._clock(), seen.get("status") or {}, seen.get("spec") or {}
        if not spec.get("gating"):
            off_since = seconds(status.get("heartbeatTime"))
            return {} if off_since is None else dict.fromkeys(refused, off_since)
        rests = breaker.after(breaker.rests_of(status), refused, now)
        # Its memory first: the next leader would otherwise gate again at once.
        status = {**status, "refusals": breaker.written(rests)}
        found = write_status(self._client, GATE_SWITCH, seen, status) or seen
        resting = breaker.lasting(rests, now)
        spec = {
            "namespaces": [each for each in spec.get("namespaces") or () if each not in resting],
            "restingNamespaces": sorted(resting),
        }
        if changes := {key: value for key, value in spec.items() if value != (found.get("spec") or {}).get(key)}:
            guarded = {"metadata": {"resourceVersion": found["metadata"]["resourceVersion"]}, "spec": changes}
            self._client.patch(GATE_SWITCH, self._name, guarded)
        new = resting.keys() - self.rests.keys()
        for each in (resting[namespace] for namespace in sorted(new & refused.keys())):
            minutes = (each.until - each.since) / 60
            words = "executors of %s are not gated for %.0f minutes: their release is refused: %s"
            _LOG.warning(words, each.namespace, minutes, each.message)
            self._changed = True
        self.rests = resting
        return {namespace: resting[namespace].since for namespace in refused if namespace in resting}

    def _status(self, reason: str, rests: Iterable[Rest]) -> JSON:
        said: JSON = {"leader": self._identity, "heartbeatTime": text(self._clock()), "reason": reason}
        refusals = breaker.written(rests)
        return {**said, "refusals": refusals} if refusals else said

    def gates(self, namespace: str) -> frozenset[str]:
        """The schedulers whose executors it gates in the namespace, as this leader wrote it last."""
        kept = self._kept
        if kept is None or not kept.gating or namespace in self.rests:
            return frozenset()
        gated = kept.all_namespaces or namespace in kept.namespaces
        return frozenset(kept.scheduler_names if gated else ())

    def stand_aside(self) -> None:
        """Off, and its reason says why; without a switch there is one then. Written once.

        One that an uninstallation has turned off keeps saying so.
        """
        self._kept = None
        seen = gate_switch(self._client, self._name) or {}
        if self._uninstalled(seen):
            return
        if (seen.get("status") or {}).get("reason") != ASIDE or (seen.get("spec") or {}).get("gating"):
            self._turn_off(ASIDE, seen)

    def forget(self) -> None:
        """Another replica or a user may have turned it: read it before relying on the last written value."""
        self._kept = None

    def _uninstalled(self, seen: JSON) -> bool:
        status = seen.get("status") or {}
        at = seconds(status.get("heartbeatTime"))
        if status.get("reason") != UNINSTALLED or at is None:
            return False
        now = self._clock()
        began_at = now - (self._monotonic() - self._began)
        created_at = self._pod_created_at()
        return int(began_at if created_at is None else min(began_at, created_at)) <= at <= now + MOST_AHEAD_SECONDS

    def _tell(self) -> None:
        if not self.stays_off:
            words = "the gate switch %s was turned off by `ballast release --all`: restart the Deployment to gate again"
            _LOG.warning(words, self._name)
        self.stays_off = True

    def off(self, reason: str) -> None:
        """New executors are not held any more. Does nothing when there is no switch.

        One that an uninstallation has turned off keeps saying so: its operator stops right after, and may have been
        there longer than this process. Tried twice if another client writes it meanwhile, as a replica may that takes
        out a namespace.
        """
        try:
            self._off(reason)
        except Conflict:
            self._off(reason)

    def _off(self, reason: str) -> None:
        self._kept = None
        seen = gate_switch(self._client, self._name)
        if seen is None or self._uninstalled(seen) or (reason != UNINSTALLED and _off_for_good(seen)):
            return
        self._turn_off(reason, seen)

    def _turn_off(self, reason: str, seen: JSON) -> None:
        # The next leader goes on with its memory.
        status = self._status(reason, breaker.rests_of(seen.get("status") or {}))
        set_gate_switch(self._client, Wanted(gating=False).spec(), status=status, name=self._name, seen=seen)


def _off_for_good(seen: JSON) -> bool:
    """Whether it has not been turned on since an uninstallation turned it off."""
    return (seen.get("status") or {}).get("reason") == UNINSTALLED and not (seen.get("spec") or {}).get("gating")
