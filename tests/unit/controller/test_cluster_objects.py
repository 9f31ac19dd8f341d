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


def test_topologies_beyond_the_quota_are_left_alone_as_by_the_operator(tmp_path: Path) -> None:
    components = [{"name": f"c{number}", "selector": {"matchLabels": {"long": "a" * 63}}} for number in range(100)]
    names = [f"t-{number:04}" for number in range(600)]
    flood = [
        {"metadata": {"name": each, "namespace": "tenant", "uid": each}, "spec": {"components": components}}
        for each in names
    ]
    listed = Answer(body={"items": flood, "metadata": {}})
    with scripted() as script:
        script.by = lambda asked: listed if resource(asked) == "sparktopologies" else EMPTY
        objects = ClusterLister(script.client(tmp_path)).look()
    kept = [read.resource.metadata.name for read in objects.topologies]
    assert kept == names[: len(kept)]
    assert 0 < len(kept) < len(names)
    assert [each.name for each in objects.excesses] == [names[len(kept)]]
    assert objects.broken == ()
