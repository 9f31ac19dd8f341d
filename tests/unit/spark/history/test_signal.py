from __future__ import annotations

import re
from pathlib import Path

import pytest

from ballast.prometheus import Preset
from ballast.spark.history.signal import Subject, signals

DOCS = Path(__file__).parents[4] / "docs" / "history.md"


@pytest.mark.parametrize("preset", list(Preset))
def test_every_signal_has_a_name_of_its_own_and_a_whole_query(preset: Preset) -> None:
    found = signals(preset, window_seconds=120, operator="ballast-system")
    names = [signal.name for signal in found]
    assert len(names) == len(set(names))
    assert {"nodeCpu", "nodeCores", "executorCpu", "placement", "nodeScore", "moves", "refusals"} <= set(names)
    assert not any("$window" in signal.query for signal in found)


@pytest.mark.parametrize("preset", list(Preset))
def test_a_query_yields_the_labels_that_its_subject_is_known_by(preset: Preset) -> None:
    for signal in signals(preset, window_seconds=120, operator="ballast-system"):
        known_by = {Subject.NODE: "node", Subject.EXECUTOR: "namespace, pod", Subject.POOL: "policy"}[signal.subject]
        assert known_by in signal.query, signal.name
        assert signal.detail is None or signal.detail in signal.query, signal.name


@pytest.mark.parametrize("preset", list(Preset))
def test_no_pod_exports_more_of_nodes_and_executors_than_is_read(preset: Preset) -> None:
    """Prometheus answers no query about too many series, and then nothing is collected."""
    for signal in signals(preset, window_seconds=120, operator="ballast-system"):
        if signal.subject is not Subject.POOL and "ballast_node" not in signal.query:
            before, bound, _ = signal.query.partition("topk by (namespace")
            assert bound, signal.name
            assert not re.search(r"(kube|node|machine|container|ballast)_\w+\{", before), signal.name


def test_the_documentation_tells_of_every_signal() -> None:
    text = DOCS.read_text(encoding="utf-8")
    rows = {
        tuple(cell.strip() for cell in line.strip("| ").split("|"))
        for line in text.splitlines()
        if line.startswith("| `")
    }
    told = {(cells[0].strip("`"), cells[1], cells[2]) for cells in rows if len(cells) == 3}
    every = {signal for preset in Preset for signal in signals(preset, window_seconds=120, operator="ballast-system")}
    assert {(signal.name, str(signal.subject), signal.meaning) for signal in every} <= told
