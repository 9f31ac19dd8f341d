"""The policy that a backtest recommends, applied as users are told to: its YAML, by kubectl, to the real API server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ballast.api.policy_placement import PlacementStrategy
from ballast.api.policy_shedding import SheddingStrategy
from ballast.cli.picture.backtested import to_apply
from ballast.simulation.policies import Axis, candidates, shared_figures
from ballast.simulation.ranking import ranking
from ballast.simulation.scenario import Scenario
from tests.cluster.crds.server import Server
from tests.testbed.testbed import Testbed
from tests.unit.simulation.studies import study

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

EXAMPLES = Path(__file__).parents[2] / "examples"
FIGURES = shared_figures([Scenario.read(EXAMPLES / "scenarios" / "noisy-day.yaml")])
NAMED = [
    *(shedding.value for shedding in SheddingStrategy),
    "AvgShedder/Traffic",
    *(f"AvgShedder+{placement}" for placement in PlacementStrategy),
]
FILES = [str(EXAMPLES / "balancingpolicy.yaml"), str(EXAMPLES / "balancingpolicy-enforce.yaml")]
GRID = ["shedding.avgShedder.minHotScore=50,60", "moves.settle=6m,90m", "moves.mode=Approve,Disabled"]


@pytest.mark.parametrize(
    ("policies", "grid"),
    [
        pytest.param(NAMED, [], id="strategies"),
        pytest.param(FILES[:1], [], id="a-file-that-only-recommends"),
        pytest.param(FILES[1:], GRID, id="a-file-in-all-variants-of-a-grid"),
    ],
)
def test_it_can_be_applied(
    control_plane: Testbed, crd_server: Server, policies: Sequence[str], grid: Sequence[str]
) -> None:
    documents = candidates(policies, [Axis.parse(text) for text in grid], figures=FIGURES, baseline=True)
    found = replace(study(list(documents)), policies=documents)
    ranked = ranking(found)
    for label, document in documents.items():
        written = to_apply(found, replace(ranked, recommended=label))
        said = control_plane.kubectl("apply", "--dry-run=server", "--filename=-", "--output=name", input_text=written)
        assert said.strip() == f"balancingpolicy.ballast.dev/{document['metadata']['name']}", label
