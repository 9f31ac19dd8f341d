"""Executors that opted in although no policy includes them: nothing else would say so."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from ballast.kube.pods import Pod
from ballast.model import Cause, Phase, Unplaced

_DETAIL = (
    "no BalancingPolicy that is followed includes it: create one, or correct namespaceSelector and topologySelector of "
    "the one that there is"
)


def unclaimed(
    pods: Iterable[Pod], namespaces: Mapping[str, Mapping[str, str]], covered: Container[str]
) -> tuple[Unplaced, ...]:
    """`namespaces`: labels of each. `covered`: uids of the executors that policies include."""
    return tuple(
        Unplaced(pod.key, Cause.POLICY_MISSING, _DETAIL)
        for pod in sorted(pods, key=lambda pod: pod.key)
        if pod.executor is not None
        and pod.uid not in covered
        and not pod.executor.opted_out
        and pod.opted_in(namespaces.get(pod.namespace, {}))
        and pod.phase not in (Phase.ENDED, Phase.LEAVING)
    )
