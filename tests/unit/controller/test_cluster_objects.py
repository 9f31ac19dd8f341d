"""In which order the cluster is read, and what it is called when it can't be."""

from __future__ import annotations

from pathlib import Path

import pytest

from ballast.controller.cluster_objects import ClusterLister, NotInstalledError
from tests.apiserver import Answer, Asked, scripted

EMPTY = Answer(body={"items": [], "metadata": {}})


def resource(asked: Asked) -> str:
    return asked.path.split("?")[0].rsplit("/", 1)[-1]


def test_who_is_seen_is_seen_with_the_policy_and_the_namespace_that_were_there_before(tmp_path: Path) -> None:
    with scripted() as script:
        script.by = lambda _: EMPTY
        ClusterLister(script.client(tmp_path)).look()
        order = [resource(asked) for asked in script.asked]

    pods = order.index("pods")
    later = ["balancingpolicies", "sparktopologies", "namespaces", "nodes"]
    assert [name for name in later if order.index(name) < pods] == []
    assert order.index("executormoves") < pods, "what a move has brought about is in the pods"


@pytest.mark.parametrize("missing", ["executormoves", "balancingpolicies", "sparktopologies"])
def test_a_cluster_without_a_definition_is_told_what_to_install(tmp_path: Path, missing: str) -> None:
    with scripted() as script:
        script.by = lambda asked: Answer(status=404, body={}) if resource(asked) == missing else EMPTY
        with pytest.raises(NotInstalledError, match=f"knows no {missing}: install the chart"):
            ClusterLister(script.client(tmp_path)).look()


def test_topologies_beyond_a_limit_are_left_alone_as_by_the_operator(tmp_path: Path) -> None:
    names = [f"t-{number:04}" for number in range(103)]
    flood = [
        {"metadata": {"name": each, "namespace": "tenant", "uid": each}, "spec": {"components": [{"name": "a"}]}}
        for each in names
    ]
    listed = Answer(body={"items": flood, "metadata": {}})
    with scripted() as script:
        script.by = lambda asked: listed if resource(asked) == "sparktopologies" else EMPTY
        objects = ClusterLister(script.client(tmp_path)).look()
    assert [read.resource.metadata.name for read in objects.topologies] == names[:100]
    assert [read.resource.metadata.name for read, _ in objects.turned_away] == names[100:]
    assert objects.broken == ()
