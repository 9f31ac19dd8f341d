from __future__ import annotations

from typing import Any

import pytest

from ballast.controller.pod_index import PodIndex
from ballast.kube.pods import PodReader
from tests.unit.kube.builders import GATE, executor

LONG = {f"long-{number}.io/x": "y" * 63 for number in range(1_000)}


def kept(**changes: Any) -> dict[str, str]:
    raw = executor(**changes)
    raw["metadata"]["labels"] |= LONG | {"team": "blue", "ballast.dev/topology": "clicks"}
    index = PodIndex(notify=lambda: None, gated=lambda: None, failed=lambda _: None)
    return dict(index.slim(PodReader().read(raw)).labels)


@pytest.mark.parametrize("changes", [{}, {"gates": [GATE]}, {"node": None}], ids=["bound", "gated", "pending"])
def test_of_labels_longer_than_any_templates_only_those_that_ballast_or_spark_names_are_kept(
    changes: dict[str, Any],
) -> None:
    labels = kept(**changes)
    assert "team" not in labels
    assert not any(name.startswith("long-") for name in labels)
    assert labels["ballast.dev/topology"] == "clicks"
    assert labels["spark-role"] == "executor"
