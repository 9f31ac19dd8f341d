"""One release of Ballast acts in a cluster: a second one, of another name, stands aside.

Leader election is between the replicas of one release. Two releases would plan for the same pools, and neither would
count the other's moves in its budgets. Each release has its GateSwitch, which its leader marks as Leading.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable

from ballast.controller.switch import LEADING, Switch
from ballast.errors import BallastError
from ballast.kube.client import Client
from ballast.kube.document import JSON
from ballast.kube.errors import Forbidden, KubeError, NotFound
from ballast.kube.kinds import GATE_SWITCH
from ballast.kube.objects import Query, read_list

_LOG = logging.getLogger(__name__)
COMPARE_SECONDS = 30.0
"""How often to look: for so long may two act that have begun at the same moment."""
RETRY_SECONDS = 5.0
"""Until it is asked again after an error."""


class AnotherReleaseError(BallastError):
    """Another release of Ballast acts in this cluster."""

    public = True


class OtherReleases:
    """`switch`: of this release, whose name is `name`. `monotonic`: seconds that nothing sets back."""

    def __init__(self, client: Client, switch: Switch, *, name: str, monotonic: Callable[[], float]) -> None:
        self._client, self._switch, self._name, self._monotonic = client, switch, name, monotonic
        self._known = False
        self._next_at = -math.inf
        """Monotonic seconds at which to look again."""

    @property
    def alone(self) -> bool:
        """Whether no other release acted when this was last asked."""
        return self._known

    def forget(self) -> None:
        """Look again before anything is done: this replica did not lead."""
        self._known, self._next_at = False, -math.inf

    def check(self) -> None:
        """Raises AnotherReleaseError as long as another release acts; this one's switch is off then, and says so."""
        now = self._monotonic()
        if now < self._next_at:
            return
        try:
            rival = acting_instead(self._client, self._name)
        except KubeError as error:
            # Gated executors do not wait for an answer that was given before.
            if error.of_server or not self._known:
                raise
            _LOG.warning("whether another release of Ballast acts now is not known: %s", error)
            self._next_at = now + RETRY_SECONDS
            return
        if rival is not None:
            self.forget()
            try:
                self._switch.stand_aside()
            except KubeError as error:
                _LOG.warning("the gate switch %s stays as it is: %s", self._name, error)
            raise AnotherReleaseError(
                f"the Ballast release {rival} acts in this cluster, so {self._name} does nothing: uninstall one of "
                f"them, or, if nothing is left of {rival}, delete the GateSwitch {rival}"
            )
        self._known, self._next_at = True, now + COMPARE_SECONDS


def acting_instead(client: Client, name: str) -> str | None:
    """Name of another release that acts in this cluster, and not `name`.

    None also if that can't be seen: the definition is missing, or the ClusterRole is that of an older chart.
    """
    try:
        return acting(read_list(client, Query(GATE_SWITCH), lambda raw: raw).items, name)
    except (NotFound, Forbidden) as error:
        _LOG.warning("whether another release of Ballast acts in this cluster is not known: %s", error)
        return None


def acting(switches: Iterable[JSON], name: str) -> str | None:
    """Name of another release that comes before `name`: it leads and this one does not, or its GateSwitch is older."""
    leading = {raw["metadata"]["name"]: raw for raw in switches if (raw.get("status") or {}).get("reason") == LEADING}
    first = min(leading.values(), key=_age, default=None) if name in leading else None
    if first is not None:
        return None if first["metadata"]["name"] == name else str(first["metadata"]["name"])
    return min(leading, default=None)


def _age(raw: JSON) -> tuple[str, str]:
    """Orders by the API server's creationTimestamp, which has whole seconds, then by name."""
    metadata = raw["metadata"]
    return metadata["creationTimestamp"], metadata["name"]
