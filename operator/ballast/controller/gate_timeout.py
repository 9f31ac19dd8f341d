"""The gate timeout: releasing executors that nothing else released in time. Every replica does this by itself.

The leader's reconciles release executors well before. Where they don't (the leader is dead, starved, or stuck in a
plan), executors are still released as near to each other as can be worked out in a few milliseconds.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ballast.api import BalancingPolicy
from ballast.controller import logs
from ballast.controller.cluster_objects import ClusterObjects, Read
from ballast.controller.cluster_view import ClusterView, blocked, pools_of
from ballast.controller.gateclock import STALE_AFTER_SECONDS, GateClock, LabelsOf, Rests, refused
from ballast.controller.quarantine import Quarantine, logged
from ballast.kube import actions, nomination
from ballast.kube.client import Client
from ballast.kube.pods import Pod
from ballast.model import Levels, Memory, Pin, Placement, Reason
from ballast.placement.fallback import fallback
from ballast.planner.release import fair_part, stands_aside
from ballast.prometheus import Reading
from ballast.tenancy.lane import Job, Lane

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Place:
    """Where one executor goes without a plan."""

    placement: Placement
    levels: Levels
    """That its location is named in."""
    policy: str


Places = Callable[[frozenset[str]], dict[str, Place]]
"""Places of executors, by uid. May raise anything."""


@dataclass(frozen=True, slots=True)
class Overdue:
    """What one run released."""

    placed: int = 0
    bare: int = 0
    """Released as they are, because no place could be worked out."""
    failed: int = 0
    by_policy: Mapping[str, Mapping[str, Reason]] = field(default_factory=dict)
    """Of each policy, why executors went without a plan, by uid: GateTimeout, or why no zone could take them."""
    holds: tuple[tuple[str, float], ...] = ()
    """The policy of each executor that was released (empty: of none), and for how many seconds our gate alone held it.
    """
    longest_gated_seconds: float = 0.0
    """The same of the one that is still gated, because its release was refused, lately or now, or not answered."""

    def __bool__(self) -> bool:
        return bool(self.placed or self.bare or self.failed)


class GateTimeout:
    """`gated`: the pods that our gate is in. `places`: a quick answer for them. `rest`: as `Switch.rest`.

    `clock`: seconds since the epoch.
    """

    def __init__(
        self,
        client: Client,
        lane: Lane,
        *,
        gated: Callable[[], list[Pod]],
        places: Places,
        clock: Callable[[], float],
        rest: Rests = lambda _: {},
        labels_of: LabelsOf = lambda _: {},
    ) -> None:
        self._client, self._lane, self._gated, self._places, self._clock = client, lane, gated, places, clock
        self._rest, self._labels_of = rest, labels_of
        self._gates = GateClock()
        self._late: dict[str, Job[actions.ReleaseOutcome]] = {}
        """Releases, by uid, that were not answered in time."""

    def run(self) -> Overdue:
        """Release what is overdue. Raises KubeError when the gated pods are not known."""
        pods = self._waiting()
        # Not before the first list: until then the API server's clock may not be known.
        now = self._clock()
        self._gates = self._gates.after(pods, now)
        return self.release([pod for pod in pods if self._overdue(pod, now)])

    def release_all(self, *, replace: bool) -> Overdue:
        """Release everything that our gate is in: this process can't serve its gates any more.

        `replace`: delete executors whose release is refused, which may be new. So not after a first refusal: it may be
        one of a moment.
        """
        return self.release(self._waiting(), bounded=False, replace=replace)

    def _waiting(self) -> list[Pod]:
        pods = [pod for pod in self._gated() if not pod.leaving]
        for uid in self._late.keys() - {pod.uid for pod in pods}:
            del self._late[uid]
        return pods

    def release(self, pods: Sequence[Pod], *, bounded: bool = True, replace: bool = True) -> Overdue:
        """`bounded`: without waiting for pods of namespaces about which the API server is slow."""
        # First, since places are then computed only for pods whose release is tried.
        tried = actions.due(self._lane, pods, overdue=True) if bounded else pods
        placed = self._placed(tried)
        found = [_order(pod, placed.get(pod.uid)) for pod in tried]
        orders = self._not_nominated([order for order in found if order is not None], tried)
        none = Levels(())
        outcomes = actions.release_each(
            self._client,
            self._lane,
            [(order, placed[order.uid].levels if order.uid in placed else none) for order in orders],
            late=self._late,
            overdue=True,
            patiently=not bounded,
        )
        done = [logs.Outcome("", order, outcome) for order, outcome in zip(orders, outcomes, strict=True)]
        policies = {uid: place.policy for uid, place in placed.items()}
        _log(done, policies)
        held_seconds = self._held_seconds(pods)
        if replace:
            self._replace_refused(tried, {each.order.uid: each.outcome for each in done}, patiently=not bounded)
        return _summary(done, policies, held_seconds)

    def _held_seconds(self, pods: Sequence[Pod]) -> dict[str, float]:
        """How long our gate alone has held executors, by uid. Pods that are no executors are not made to wait."""
        now = self._clock()
        since = {pod.uid: self._gates.alone_since.get(pod.uid) for pod in pods if pod.executor is not None}
        return {uid: max(0.0, now - at) for uid, at in since.items() if at is not None}

    def _replace_refused(
        self, pods: Sequence[Pod], outcomes: Mapping[str, actions.ReleaseOutcome], *, patiently: bool
    ) -> None:
        """Gate no more executors where releases are refused, and delete those that wait, so that Spark creates others.

        `outcomes`: of releases, by uid.
        """
        stuck = refused(pods, outcomes, self._rest, self._labels_of)
        for pod, outcome in actions.delete_gated_many(self._client, self._lane, stuck, patiently=patiently):
            logs.note_done(logs.Line.DELETED, "", move="", executor=pod.key, outcome=outcome)

    def _not_nominated(self, orders: list[actions.Release], pods: Sequence[Pod]) -> list[actions.Release]:
        """Clear the nominations that a crash before the release has left.

        The nominated node need not be in the zone that was found now. There may be no leader that clears nominations
        later, and Karpenter provides no node for a nominated pod.
        """
        found, _ = nomination.clear_left_over(self._client, self._lane, orders, {pod.uid: pod for pod in pods})
        return found

    def _placed(self, pods: Sequence[Pod]) -> dict[str, Place]:
        # Another controller's gate is still in the others: Kueue may choose the nodes of a pod that it admits.
        executors = frozenset(pod.uid for pod in pods if pod.executor is not None and not pod.awaited_gates)
        try:
            return self._places(executors) if executors else {}
        except Exception:  # noqa: BLE001 -- it is logged
            # Better no place than no release.
            _LOG.exception("no place could be worked out for %d overdue executors", len(executors))
            return {}

    def _overdue(self, pod: Pod, now: float) -> bool:
        """A pod that is no executor is not made to wait at all: our gate came with a template that it shares."""
        since = self._gates.alone_since.get(pod.uid)
        return pod.executor is None or (since is not None and now - since >= STALE_AFTER_SECONDS)


def _order(pod: Pod, place: Place | None) -> actions.Release | None:
    return actions.order(pod, place.placement if place else _bare(pod))


def _bare(pod: Pod) -> Placement:
    return Placement(pod.key, pod.uid, None, (), Pin.NONE, Reason.GATE_TIMEOUT, "no place was found in time")


def _log(done: Iterable[logs.Outcome], policies: Mapping[str, str]) -> None:
    of_policy: dict[str, list[logs.Outcome]] = defaultdict(list)
    for each in done:
        of_policy[policies.get(each.order.uid, "")].append(each)
    for policy, outcomes in of_policy.items():
        logs.note_releases(policy, outcomes)


def _summary(done: Sequence[logs.Outcome], policies: Mapping[str, str], held_seconds: Mapping[str, float]) -> Overdue:
    """`policies`: by uid, of the executors that have a place. `held_seconds`: by uid, of all overdue executors."""
    released = [each.order.placement for each in done if _by_us(each.outcome)]
    failed = sum(isinstance(each.outcome, actions.Refused | actions.Changed) for each in done)
    near = sum(any(placement.location) for placement in released)
    reasons: dict[str, dict[str, Reason]] = defaultdict(dict)
    for each in released:
        policy = policies.get(each.uid)
        if policy is not None and each.reason is not None:
            reasons[policy][each.uid] = each.reason
    holds = tuple((policies.get(each.uid, ""), held_seconds[each.uid]) for each in released if each.uid in held_seconds)
    # Those of another replica, or that are gone, are gated no longer, although this replica may not have heard of it.
    gone = {each.order.uid for each in done if isinstance(each.outcome, actions.Released | actions.Vanished)}
    still = (seconds for uid, seconds in held_seconds.items() if uid not in gone)
    return Overdue(near, len(released) - near, failed, reasons, holds, max(still, default=0.0))


def _by_us(outcome: actions.ReleaseOutcome) -> bool:
    return isinstance(outcome, actions.Released) and not outcome.already


class Fallback:
    """Places without a plan: for every policy that enforces placement, `ballast.placement.fallback`.

    `look`: shows the cluster, or raises soon. `clock`: seconds since the epoch; `monotonic`: seconds that are never set
    back.
    """

    def __init__(
        self,
        look: Callable[[], ClusterObjects],
        *,
        clock: Callable[[], float],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._look, self._clock, self._monotonic = look, clock, monotonic
        self._quarantines: dict[str, Quarantine] = {}
        """By policy."""

    def __call__(self, uids: frozenset[str]) -> dict[str, Place]:
        """Places of those of the executors that a policy may place, and of no more than take a moment: none waits."""
        objects, now = self._look(), self._clock()
        pools = pools_of(objects.policies, objects.lists.nodes)
        pods = objects.lists.pods
        cluster_view = ClusterView(objects, pools, GateClock().after(pods, now), now)
        found: dict[str, Place] = {}
        names = {read.resource.metadata.name for read in objects.policies}
        self._quarantines = {
            name: self._quarantines.get(name) or Quarantine(self._monotonic, logged(name)) for name in names
        }
        for read in objects.policies:
            if blocked(read.resource, pools) is None:
                found |= self._of_policy(cluster_view, read, uids - found.keys())
        return found

    def _of_policy(
        self, cluster_view: ClusterView, read: Read[BalancingPolicy], uids: frozenset[str]
    ) -> dict[str, Place]:
        def decide(left_out: frozenset[str]) -> dict[str, Place]:
            context = cluster_view.without(left_out).context(read, Memory(), Reading(), [])
            snapshot, policy = context.snapshot, context.policy
            gated = [e for e in snapshot.executors if e.uid in uids and stands_aside(e, policy.placement) is None]
            chosen = fair_part(gated)
            gated = [executor for executor in gated if executor.topology in chosen]
            placements = fallback(snapshot, policy, gated=gated) if gated else []
            return {placement.uid: Place(placement, policy.levels, policy.name) for placement in placements}

        return self._quarantines[read.resource.metadata.name].decide(decide, cluster_view.namespaces)[0]
