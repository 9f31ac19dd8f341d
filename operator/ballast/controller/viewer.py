"""Seeing a pool as the operator does, without acting: for the commands that only read."""

from __future__ import annotations

from collections.abc import Callable

from ballast.controller.context import Context
from ballast.controller.figures import Figures
from ballast.controller.gateclock import GateClock
from ballast.controller.memory import recalled
from ballast.controller.movers import read_moves
from ballast.controller.pools import territories
from ballast.controller.sight import Sight
from ballast.controller.survey import Survey, Surveyor
from ballast.errors import BallastError
from ballast.kube.client import Client


class NoSuchPolicyError(BallastError):
    """No policy of that name, none at all, or several without one being named."""


class Viewer:
    """`clock`: seconds since the epoch."""

    def __init__(self, client: Client, *, clock: Callable[[], float], namespace: str = "") -> None:
        self._surveyor = Surveyor(client)
        self._figures = Figures(client, namespace=namespace)
        self._clock = clock

    def policies(self, survey: Survey) -> list[str]:
        return [read.resource.metadata.name for read in survey.policies]

    def contexts(self) -> list[Context]:
        """Every policy's pool; those that overlap with an older one are left out."""
        survey = self._surveyor.look()
        lands = territories(survey.policies, survey.lists.nodes)
        return [self._context(survey, name) for name in self.policies(survey) if name not in lands.stalled]

    def context(self, policy: str | None) -> Context:
        """One pool. Raises NoSuchPolicyError."""
        survey = self._surveyor.look()
        names = self.policies(survey)
        if policy is None and len(names) != 1:
            raise NoSuchPolicyError(
                f"say which policy with --policy: {', '.join(names)}" if names else "there is no BalancingPolicy yet"
            )
        name = policy or names[0]
        if name not in names:
            raise NoSuchPolicyError(f"no BalancingPolicy {name}; there are: {', '.join(names) or 'none'}")
        return self._context(survey, name)

    def _context(self, survey: Survey, name: str) -> Context:
        now = self._clock()
        lands = territories(survey.policies, survey.lists.nodes)
        read = next(read for read in survey.policies if read.resource.metadata.name == name)
        gates = GateClock().after(survey.lists.pods, now)
        sight = Sight(survey, lands, gates, now)
        moves, _ = read_moves(survey.moves)
        memory = recalled(read.resource.status, [topology.resource for topology in survey.topologies])
        return sight.context(read, memory, sight.figures(read, self._figures), moves)
