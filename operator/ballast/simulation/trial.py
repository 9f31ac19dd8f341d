"""One window that policies are tried in: a scenario, or recorded time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ballast.api import BalancingPolicy
from ballast.model.from_api import policy_from
from ballast.simulation.engine import simulate
from ballast.simulation.policies import enforced, policy_in
from ballast.simulation.recorded.assumptions import of_queries
from ballast.simulation.recording import Recording
from ballast.simulation.replay import Replay, replay
from ballast.simulation.scenario import Scenario
from ballast.simulation.study import Case, Result


class Trial(Protocol):
    """Equal arguments give equal results, in whichever process."""

    def run(self, policy: BalancingPolicy, case: Case) -> Result:
        """What only recommends, or waits for approval, is run as if it enforced. Raises BallastError."""
        ...


@dataclass(frozen=True, slots=True)
class ScenarioTrial:
    scenario: Scenario

    def run(self, policy: BalancingPolicy, case: Case) -> Result:
        obeyed = enforced(policy_in(policy, self.scenario))
        return Result.of(case, simulate(self.scenario, obeyed, seed=case.seed, label=case.policy))


@dataclass(frozen=True, slots=True)
class RecordingTrial:
    recording: Recording
    how: Replay

    def run(self, policy: BalancingPolicy, case: Case) -> Result:
        known = self.how.known.nodes
        hosts = {
            node.name: {"kubernetes.io/hostname": node.name, **(known[node.name].labels if node.name in known else {})}
            for node in self.recording.nodes
        }
        obeyed = enforced(policy_from(policy, hosts))
        found = replay(self.recording, obeyed, how=self.how, seed=case.seed, label=case.policy)
        return Result.of(case, found.trace, (*of_queries(policy), *found.unknown))
