"""Seeing pools as the operator does, without acting: for the commands that only read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ballast.api import BalancingPolicy
from ballast.api.policy_metrics import Prometheus
from ballast.controller.context import Context
from ballast.controller.failures import Failures
from ballast.controller.gateclock import GateClock
from ballast.controller.memory import recalled
from ballast.controller.metrics import MetricsReader
from ballast.controller.openmove import OpenMove, read_moves
from ballast.controller.pools import blocked, pools_of
from ballast.controller.sight import Sight
from ballast.controller.survey import Read, Survey, Surveyor
from ballast.errors import BallastError
from ballast.kube.client import Client
from ballast.prometheus import SHUFFLE


class NoSuchPolicyError(BallastError):
    """No policy of that name, or none that could be read."""


class NoPolicyError(NoSuchPolicyError):
    """There is none at all yet."""


@dataclass(frozen=True, slots=True)
class View:
    """What there was to see."""

    contexts: tuple[Context, ...]
    """One for each policy whose pool could be read, the oldest first."""
    problems: tuple[str, ...]
    """Why other policies, topologies or moves could not be read, and what their owners should know."""
    survey: Survey

    def why_absent(self, namespace: str, pod: str) -> str:
        """Why no context has this executor, with what to do about it."""
        name = f"{namespace}/{pod}"
        found = next((p for p in self.survey.lists.pods if (p.namespace, p.name) == (namespace, pod)), None)
        if found is None:
            return f"{name}: there is no such pod; say its namespace with -n"
        if found.is_driver:
            return f"{name} is a driver: drivers are never placed or moved"
        if found.executor is None:
            return f"{name} is no Spark executor (label spark-role=executor): Ballast never touches it"
        holder = next((context.others[found.uid] for context in self.contexts if found.uid in context.others), None)
        if holder is not None:
            return f"{name}: BalancingPolicy {holder} answers for it; ask with --policy {holder}"
        return f"{name}: no policy's namespaceSelector and topologySelector include it"


class Viewer:
    """`clock`: seconds since the epoch. `namespace`: the operator's own, where the policies' secrets are.

    `prometheus`: an address to ask instead of the policies' own, for those who look from outside of the cluster.
    """

    def __init__(
        self, client: Client, *, clock: Callable[[], float], namespace: str = "", prometheus: str | None = None
    ) -> None:
        self._surveyor = Surveyor(client)
        self._metrics = MetricsReader(client, namespace=namespace, more=SHUFFLE)
        self._clock = clock
        self._prometheus = prometheus

    def look(self, policy: str | None = None) -> View:
        """Every policy's pool, or that of one. Raises NoSuchPolicyError when there is nothing to see."""
        survey = self._surveyor.look()
        moves, broken = read_moves(survey.moves)
        pools = pools_of(survey.policies, survey.lists.nodes)
        problems = [str(error) for error in (*survey.broken, *broken)]
        why_not = {_name(p): why.message for p in survey.policies if (why := blocked(p.resource, pools)) is not None}
        problems += [f"BalancingPolicy {name}: {why}" for name, why in why_not.items()]
        chosen = [read for read in survey.policies if policy in (None, _name(read))]
        if not survey.policies and not problems:
            raise NoPolicyError("there is no BalancingPolicy yet")
        if policy is not None and not chosen:
            names = ", ".join(_name(read) for read in survey.policies)
            raise NoSuchPolicyError(f"there is no BalancingPolicy {policy}; there are: {names or 'none'}")
        now = self._clock()
        pods = survey.lists.pods
        sight = Sight(survey, pools, GateClock().after(pods, now), now, Failures().after(pods))
        contexts = [self._context(sight, read, moves) for read in chosen if _name(read) not in why_not]
        if not contexts:
            raise NoSuchPolicyError("; ".join(problems))
        problems += [f"{f.topology}: {f.reason}: {f.message}" for context in contexts for f in context.findings]
        return View(tuple(contexts), tuple(dict.fromkeys(problems)), survey)

    def close(self) -> None:
        self._metrics.close()

    def _context(self, sight: Sight, read: Read[BalancingPolicy], moves: list[OpenMove]) -> Context:
        read = self._redirected(read)
        topologies = [topology.resource for topology in sight.survey.topologies]
        memory = recalled(read.resource.status, topologies)
        own = sight.own_moves(moves, _name(read))
        return sight.context(read, memory, sight.read_metrics(read, self._metrics), own)

    def _redirected(self, read: Read[BalancingPolicy]) -> Read[BalancingPolicy]:
        if self._prometheus is None:
            return read
        spec = read.resource.spec
        known = spec.metrics.prometheus
        server = known.model_copy(update={"url": self._prometheus}) if known else Prometheus(url=self._prometheus)
        metrics = spec.metrics.model_copy(update={"prometheus": server})
        changed = spec.model_copy(update={"metrics": metrics})
        return replace(read, resource=read.resource.model_copy(update={"spec": changed}))


def _name(read: Read[BalancingPolicy]) -> str:
    return read.resource.metadata.name
