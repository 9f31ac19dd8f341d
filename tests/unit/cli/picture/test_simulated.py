from __future__ import annotations

import re
from pathlib import Path

from ballast.cli.picture.simulated import simulated_page
from ballast.simulation.engine import simulate
from ballast.simulation.policies import from_name
from ballast.simulation.scenario import Scenario
from tests.unit.cli.picture.outline import Outline

SCENARIO = Scenario.read(Path(__file__).parents[4] / "examples" / "scenarios" / "pip364-five-brokers.yaml")


def page(*policies: str) -> str:
    runs = [simulate(SCENARIO, from_name(name, SCENARIO), label=name) for name in policies]
    return simulated_page(SCENARIO, runs, made="2026-11-22 21:00 UTC by ballast 0.1.0")


def test_the_page_is_well_formed_and_needs_nothing_else() -> None:
    text = page("AvgShedder", "None")
    outline = Outline(text)
    assert (outline.open, outline.outside) == ([], [])
    assert not re.search(r"https?://|@import|url\(|<script", text)


def test_the_page_begins_with_the_answer_and_when_it_was_made() -> None:
    head = page("AvgShedder", "None").split("<h2>")[0]
    assert "AvgShedder is better than no moves: " in head
    assert "Made 2026-11-22 21:00 UTC by ballast 0.1.0." in head


def test_every_policy_has_its_figures_its_line_and_its_nodes() -> None:
    text = page("AvgShedder", "ThresholdShedder")
    for policy in ("AvgShedder", "ThresholdShedder"):
        assert f"<td>{policy}</td>" in text
        assert re.search(rf"<h3>{policy}: \d+ moves</h3>", text)
    assert "nothing was moved" in page("None")
