"""Writes status: on change, at most once a minute for each object. One policy owns the status of each topology."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic import ValidationError

from ballast.api import BalancingPolicy, SparkTopology
from ballast.api.meta import StatusModel
from ballast.controller.breaker import Rest
from ballast.controller.cluster_objects import Read
from ballast.controller.context import Context
from ballast.controller.ends import Finding
from ballast.controller.logs import Changes
from ballast.controller.loop import earliest
from ballast.controller.membership import key_of
from ballast.controller.quota import Excess
from ballast.controller.status import Outlook, policy_status, stalled_status, topology_status, unshown_status
from ballast.controller.status.topology import Adviser
from ballast.errors import BallastError, described
from ballast.kube import kinds
from ballast.kube.client import Client
from ballast.kube.errors import Conflict, KubeError, NotFound
from ballast.kube.events import EventRecorder, Notice, Regarding
from ballast.kube.kinds import Kind
from ballast.kube.objects import difference, write_status
from ballast.model import ConditionReason, EventReason, Memory, MovesMode, Phase, Plan
from ballast.tenancy.lane import Lane, Rank

_LOG = logging.getLogger(__name__)
_NO_FAULT = (ConditionReason.NOT_CONFIGURED, ConditionReason.NO_ANSWER_YET)
QUIET_SECONDS = 60.0
"""Between two writes of one object's status."""
_MOST_URGENT = 10
"""Urgent writes of one object's status that may follow each other at once. A user may fail executors, or have a
condition come and go, in every reconcile.
"""
_URGENT_SECONDS = 5.0
"""Until one more urgent write is allowed."""
_RETRY_SECONDS = 1.0
"""Until a status is written again after a conflict, or next to one that is under way."""
_SERVER_SECONDS = 10.0
"""The same while the API server takes no statuses."""

JSON = dict[str, Any]


class Reporter:
    """`clock`: seconds since the epoch; `stays_off`: whether the gate switch stays off although this operator leads.

    `rests`: by namespace, where executors are not gated for now. `try_again`: is called, from any thread, with the
    seconds after which a status is to be worked out again, because the object has changed.
    """

    def __init__(
        self,
        client: Client,
        lane: Lane,
        *,
        events: EventRecorder,
        clock: Callable[[], float],
        stays_off: Callable[[], bool] = lambda: False,
        rests: Callable[[], Mapping[str, Rest]] = dict,
        try_again: Callable[[float], object] = lambda _: None,
    ) -> None:
        self._client, self._lane, self._events, self._clock = client, lane, events, clock
        self._stays_off, self._rests, self._try_again = stays_off, rests, try_again
        self._written: dict[str, _Written] = {}
        """By uid. The lane's threads write it, too, under the lock."""
        self._lock = threading.Lock()
        self._told: set[str] = set()
        self._advisers: dict[str, Adviser] = {}
        self._changes = Changes()
        self._policies: frozenset[str] = frozenset()
        self._candidates: dict[str, tuple[Read[SparkTopology], list[Candidate]]] = {}
        """Of this reconcile, by topology key."""

    def __len__(self) -> int:
        """How many things it remembers from reconcile to reconcile."""
        return len(self._written) + len(self._told) + len(self._advisers) + len(self._changes)

    def report(self, context: Context, decided: Plan, memory: Memory, *, renew: bool) -> float | None:
        """Bring the policy's status up to date; its topologies' come with `conclude`. `renew`: the metrics are new.

        Returns when what had to wait may be written; None where nothing had to.
        """
        adviser = self._advisers.setdefault(context.name, Adviser())
        outlook = Outlook(
            context.snapshot,
            context.policy,
            decided,
            memory,
            context.snapshot.taken_at,
            adviser.recommendations(context, renew=renew),
            context.findings,
            self._stays_off(),
            context.failures,
            context.left_out,
            self._rests_of(context),
        )
        resource = context.read.resource
        status: StatusModel
        try:
            status = policy_status(resource, outlook)
        except Exception as error:  # noqa: BLE001 -- it is logged, and the policy's pass goes on
            status = unshown_status(resource, _problem(context.name, error), outlook.now)
        self._changes.refusals(context.name, decided)
        if renew and context.policy.moves.mode is MovesMode.RECOMMEND:
            self._changes.recommended(context.name, decided.moves)
        self._collect(context, outlook)
        for finding in context.findings:
            self._find(context, finding)
        self._miss_metrics(context)
        return self._write(kinds.BALANCING_POLICY, context.read.raw, status.to_dict())

    def _rests_of(self, context: Context) -> dict[str, Rest]:
        return {name: rest for name, rest in self._rests().items() if _is_of(context, name)}

    def _collect(self, context: Context, outlook: Outlook) -> None:
        """A topology's status waits until every policy was reported: only its owner writes it."""
        stalled = {finding.topology: finding for finding in context.findings if finding.stalls}
        ours = {topology.key for topology in context.snapshot.topologies}
        nodes = frozenset(node.name for node in context.snapshot.nodes)
        for read in context.objects.topologies:
            key = key_of(read.resource)
            if key in stalled or key in ours:
                candidate = Candidate.of(outlook, key, nodes=nodes, stalls=stalled.get(key))
                self._candidates.setdefault(key, (read, []))[1].append(candidate)

    def conclude(self) -> float | None:
        """Every policy has been reported: bring their topologies' status up to date. Returns as `report`."""
        return earliest(self._report_topology(*each) for each in self._candidates.values())

    def _report_topology(self, read: Read[SparkTopology], candidates: list[Candidate]) -> float | None:
        last = read.resource.status.policy
        owner = owner_of(candidates, last=last if last in self._policies else None)
        if owner is None:
            return None
        if owner.stalls is not None:
            status = stalled_status(read.resource, owner.stalls.reason, owner.stalls.message, owner.outlook.now)
        else:
            try:
                status = topology_status(read.resource, owner.outlook)
            except Exception as error:  # noqa: BLE001 -- it is logged, and one topology must not end the reconcile
                status = unshown_status(read.resource, _problem(key_of(read.resource), error), owner.outlook.now)
        return self._write(kinds.SPARK_TOPOLOGY, read.raw, status.to_dict())

    def stalled(self, read: Read[BalancingPolicy], reason: ConditionReason, message: str) -> float | None:
        """A policy that can't be followed as it is. Returns as `report`."""
        status = stalled_status(read.resource, reason, message, self._clock())
        return self._write(kinds.BALANCING_POLICY, read.raw, status.to_dict())

    def begin(
        self,
        policies: Collection[str],
        broken: Sequence[BallastError],
        excesses: Sequence[Excess] = (),
    ) -> None:
        """A reconcile begins with these policies. What is gone by now is forgotten.

        `broken`: about objects that can't be read. They are left alone, and the log names them once.
        """
        told = {str(each) for each in (*broken, *excesses)}
        for each in excesses:
            first = Regarding(each.kind, each.name, each.uid, each.namespace)
            self._events.post(Notice(first, EventReason.QUOTA_EXCEEDED, "Observe", str(each), warning=True))
        for message in sorted(told - self._told):
            _LOG.warning("left alone: %s", message)
        self._told, now = told, self._clock()
        self._policies, self._candidates = frozenset(policies), {}
        self._changes.keep(policies)
        self._advisers = {name: adviser for name, adviser in self._advisers.items() if name in policies}
        with self._lock:
            # The wall clock may have stepped backwards.
            self._written = {uid: last for uid, last in self._written.items() if 0 <= now - last.at < QUIET_SECONDS}

    def _find(self, context: Context, finding: Finding) -> None:
        regarding = context.topology(finding.topology)
        if regarding is not None:
            self._events.post(Notice(regarding, finding.reason, "Observe", finding.message, warning=True))

    def _miss_metrics(self, context: Context) -> None:
        health = context.snapshot.metrics
        if not health.available and health.reason not in _NO_FAULT:
            metadata = context.read.raw["metadata"]
            policy = Regarding(kinds.BALANCING_POLICY, metadata["name"], metadata["uid"])
            self._events.post(Notice(policy, health.reason, "Observe", health.message, warning=True))

    def _write(self, kind: Kind, seen: JSON, status: JSON) -> float | None:
        """Another generation or another condition is written at once, changed values later.

        Returns when those that had to wait may be written.
        """
        uid, now, before = seen["metadata"]["uid"], self._clock(), seen.get("status") or {}
        last = self._written.get(uid)
        if last and now < (until := last.until(urgent=_urgent(before, status, last))):
            return until if difference(before, status) else None
        key, namespace = f"status {uid}", seen["metadata"].get("namespace") or ""
        if self._lane.holds(key, namespace):
            return now + _RETRY_SECONDS
        self._lane.submit(namespace, key, Rank.STATUS, partial(self._send, kind, seen, status))
        return None

    def _send(self, kind: Kind, seen: JSON, status: JSON) -> None:
        name, uid = seen["metadata"]["name"], seen["metadata"]["uid"]
        try:
            written = write_status(self._client, kind, seen, status)
        except (Conflict, NotFound) as error:
            _LOG.debug("status of %s was not written: %s", name, error)
            if isinstance(error, Conflict):
                self._try_again(_RETRY_SECONDS)
        except KubeError as error:
            _LOG.warning("status of %s was not written: %s", name, error)
            if error.of_server:
                self._try_again(_SERVER_SECONDS)
        else:
            if written is not None:
                now = self._clock()
                with self._lock:
                    last = self._written.get(uid)
                    left = last.urgent_left(now) if last else 0.0
                    self._written[uid] = _Written(now, _counted(status), 1.0 + left)


def _is_of(context: Context, namespace: str) -> bool:
    """Whether the policy places executors of the namespace."""
    labels = context.objects.lists.namespaces.get(namespace)
    return labels is not None and context.read.resource.spec.namespace_selector.matches(labels)


def _problem(name: str, error: Exception) -> str:
    """What one value did must not fail the pass of all: the log has everything, users see the first."""
    if not isinstance(error, ValidationError):
        _LOG.error("the status of %s can't be worked out", name, exc_info=error)
        return described(error)
    _LOG.error("the status of %s is not valid: %s", name, error)
    first = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, (error.title, *first['loc'])))}: {first['msg']}"


@dataclass(frozen=True, slots=True)
class _Written:
    """What this process wrote last of an object's status."""

    at: float
    """Seconds since the epoch."""
    counted: JSON
    urgent: float = 1.0
    """Urgent writes up to this one, less one for each `_URGENT_SECONDS` between them."""

    def urgent_left(self, now: float) -> float:
        return max(0.0, self.urgent - (now - self.at) / _URGENT_SECONDS)

    def until(self, *, urgent: bool) -> float:
        """When the next one may be written."""
        if not urgent:
            return self.at + QUIET_SECONDS
        return self.at + max(0.0, self.urgent + 1.0 - _MOST_URGENT) * _URGENT_SECONDS


def _urgent(before: JSON, after: JSON, last: _Written) -> bool:
    """What the last write has brought no nearer is no reason for another: an older CRD drops fields."""
    if before.get("observedGeneration") != after.get("observedGeneration"):
        return True
    if _counted(after) not in (_counted(before), last.counted):
        return True
    return _verdicts(before) != _verdicts(after)


def _counted(status: JSON) -> JSON:
    """What must outlive a crash at any moment: how often something was tried, or it would be tried for ever, and how
    much of Spark's patience is used up.
    """
    return {field: status.get(field) or [] for field in ("attempts", "failures")}


def _verdicts(status: JSON) -> set[tuple[str, str]]:
    return {(c["type"], c["status"]) for c in status.get("conditions") or ()}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A policy that can report a topology's status. One does, the owner: two would overwrite each other for ever."""

    outlook: Outlook
    in_pool: int
    """Executors of the topology that are gated, or on the policy's nodes."""
    stalls: Finding | None = None
    """Why nothing of the topology is acted on."""

    @classmethod
    def of(cls, outlook: Outlook, topology: str, *, nodes: frozenset[str], stalls: Finding | None) -> Candidate:
        """`nodes`: names of those in the policy's pool."""
        members = outlook.executors.get(topology, ())
        in_pool = sum(executor.phase is Phase.GATED or executor.node in nodes for executor in members)
        return cls(outlook, in_pool, stalls)

    @property
    def policy(self) -> str:
        return self.outlook.policy.name


def owner_of(candidates: Sequence[Candidate], *, last: str | None) -> Candidate | None:
    """The last owner, while it has executors in its pool; else the policy with most of them; else the last owner, or
    the oldest policy. Any policy reports a topology that stalls. None if the owner can report nothing now.

    `candidates`: the oldest policy's first. `last`: the last owner, unless that policy is gone.
    """

    def rank(candidate: Candidate) -> tuple[bool, bool, int, bool]:
        was_owner = candidate.policy == last
        return candidate.stalls is None, not (was_owner and candidate.in_pool), -candidate.in_pool, not was_owner

    best = min(candidates, key=rank, default=None)
    if best is None or best.stalls is not None or best.in_pool or last in (None, best.policy):
        return best
    return None
