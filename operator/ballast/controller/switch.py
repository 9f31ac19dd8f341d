"""The gating switch: whether, and where, new executors are held."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ballast.kube.client import Client
from ballast.kube.clock import MOST_AHEAD_SECONDS
from ballast.kube.document import JSON, seconds, text
from ballast.kube.errors import Conflict
from ballast.kube.objects import difference, gate_switch, set_gate_switch
from ballast.model import PlacementMode

if TYPE_CHECKING:
    from ballast.api import BalancingPolicy

_LOG = logging.getLogger(__name__)
COMPARE_SECONDS = 60.0
"""How often the switch is read, in case another program turned it."""
MOST_NAMESPACES = 2000
"""That a switch can name; executors of further ones are not held."""
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
    return Wanted(gating=bool(chosen), namespaces=tuple(chosen[:MOST_NAMESPACES]))


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

    def keep(self, want: Wanted) -> None:
        """Make the switch say `want`; it is read now and then, and written only where it says something else.

        A switch that an uninstallation has turned off since this operator began stays off: one that is about to be
        removed must not gate executors again, also if its container fails meanwhile. The log says so once.
        """
        now = self._clock()
        # The wall clock may have stepped backwards.
        if want == self._kept and 0 <= now - self._compared_at < COMPARE_SECONDS:
            return
        # A write that fails is tried again at once: the definition may have been deleted, and be applied again.
        self._kept = None
        seen = gate_switch(self._client, self._name) or {}
        if self._uninstalled(seen):
            self._tell()
            return
        if not self._says(seen, want):
            status = {"leader": self._identity, "heartbeatTime": text(now), "reason": LEADING}
            try:
                set_gate_switch(self._client, want.spec(), status=status, name=self._name)
            except Conflict:
                return
        self._kept, self._compared_at, self.stays_off = want, now, False

    def _says(self, seen: JSON, want: Wanted) -> bool:
        status = seen.get("status") or {}
        said = (status.get("leader"), status.get("reason"))
        return bool(seen) and not difference(seen.get("spec") or {}, want.spec()) and said == (self._identity, LEADING)

    def stand_aside(self) -> None:
        """Off, and its reason says why; without a switch there is one then. Written once.

        One that an uninstallation has turned off keeps saying so.
        """
        self._kept = None
        seen = gate_switch(self._client, self._name) or {}
        if self._uninstalled(seen):
            return
        if (seen.get("status") or {}).get("reason") != ASIDE or (seen.get("spec") or {}).get("gating"):
            self._turn_off(ASIDE)

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
        there longer than this process.
        """
        self._kept = None
        seen = gate_switch(self._client, self._name)
        if seen is None or self._uninstalled(seen) or (reason != UNINSTALLED and _off_for_good(seen)):
            return
        self._turn_off(reason)

    def _turn_off(self, reason: str) -> None:
        status = {"leader": self._identity, "heartbeatTime": text(self._clock()), "reason": reason}
        set_gate_switch(self._client, Wanted(gating=False).spec(), status=status, name=self._name)


def _off_for_good(seen: JSON) -> bool:
    """Whether it has not been turned on since an uninstallation turned it off."""
    return (seen.get("status") or {}).get("reason") == UNINSTALLED and not (seen.get("spec") or {}).get("gating")
