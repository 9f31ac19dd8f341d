from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from ballast.api.labels import LabelSelector
from ballast.controller.membership import MOST_UNDECLARED, OTHERS, Belonging, Membership
from ballast.kube.pods import PodReader
from tests.unit.kube.builders import GATE, executor, topology

CLICKS = topology(
    components=[
        {"name": "kafka", "external": {"zones": {"a": 1}}},
        {"name": "ingest", "workload": "Streaming"},
        {"name": "sessions", "selector": {"matchLabels": {"app": "sessions"}}},
    ]
)
ONE = topology("single", components=[{"name": "kafka", "external": {"zones": {"a": 1}}}, {"name": "only"}])
IN_CLICKS = {"ballast.dev/topology": "clicks"}


def belonging(namespaces: dict[str, dict[str, str]] | None = None, **changes: Any) -> Belonging:
    return Membership([CLICKS, ONE], namespaces or {}).of(PodReader().read(executor(**changes)))


@pytest.mark.parametrize(
    ("labels", "topology_key", "component"),
    [
        pytest.param({**IN_CLICKS, "ballast.dev/component": "ingest"}, "analytics/clicks", "ingest", id="both labels"),
        pytest.param({**IN_CLICKS, "app": "sessions"}, "analytics/clicks", "sessions", id="label and selector"),
        pytest.param({"app": "sessions"}, "analytics/clicks", "sessions", id="selector alone"),
        pytest.param({"ballast.dev/topology": "single"}, "analytics/single", "only", id="the only component"),
        pytest.param({"ballast.dev/topology": "nowhere"}, "analytics/spark-1", "profile-0", id="nothing of that name"),
        pytest.param(
            {"ballast.dev/topology": "nowhere", "ballast.dev/component": "ingest"},
            "analytics/spark-1",
            "ingest",
            id="the component's limits hold although nothing has that name",
        ),
        pytest.param({}, "analytics/spark-1", "profile-0", id="nothing said"),
    ],
)
def test_where_an_executor_belongs(labels: dict[str, str], topology_key: str, component: str) -> None:
    found = belonging(labels=labels)
    assert (found.topology, found.component, found.known) == (topology_key, component, True)
    assert found.opted_in is bool(labels), "it opts in by whatever says where it belongs"


@pytest.mark.parametrize(("named", "unknown"), [("nowhere", "nowhere"), ("single", ""), (None, "")])
def test_a_label_that_names_nothing_is_kept(named: str | None, unknown: str) -> None:
    assert belonging(labels={"ballast.dev/topology": named} if named else {}).unknown_topology == unknown


def test_an_external_component_has_no_executors() -> None:
    found = belonging(labels={**IN_CLICKS, "ballast.dev/component": "kafka"})
    assert (found.component, found.known) == ("kafka", False)


def test_a_component_that_was_not_declared_is_kept_apart() -> None:
    assert belonging(labels={**IN_CLICKS, "ballast.dev/component": "typo"}).known is False


@pytest.mark.parametrize(
    "many",
    [
        pytest.param(lambda n: {"labels": {**IN_CLICKS, "ballast.dev/component": f"typo-{n}"}}, id="of a topology"),
        pytest.param(lambda n: {"profile": str(n)}, id="resource profiles"),
        pytest.param(
            lambda n: {"labels": {"ballast.dev/topology": "nowhere", "ballast.dev/component": f"c-{n}"}}, id="nowhere"
        ),
    ],
)
def test_very_many_components_that_nothing_declares_are_one(many: Callable[[int], dict[str, Any]]) -> None:
    """A pass compares the components of a topology with each other."""
    membership, read = Membership([CLICKS, ONE], {}), PodReader().read
    found = [membership.of(read(executor(n, **many(n)))).component for n in range(MOST_UNDECLARED + 50)]
    assert len(set(found[:MOST_UNDECLARED])) == MOST_UNDECLARED
    assert set(found[MOST_UNDECLARED:]) == {OTHERS}
    assert membership.of(read(executor(1, application="other"))).component == "profile-0", "others are not affected"
    assert belonging(labels=IN_CLICKS, profile="3").component == "profile-3"


def test_a_selector_does_not_reach_beyond_its_namespace() -> None:
    assert belonging(labels={"app": "sessions"}, namespace="other").declared is None


def test_each_resource_profile_of_an_undeclared_application_is_a_component() -> None:
    assert belonging(profile="1", application="spark-7").component == "profile-1"
    assert belonging(profile="1", application="spark-7").topology == "analytics/spark-7"


@pytest.mark.parametrize(
    ("namespaces", "changes", "opted_in", "labeled"),
    [
        pytest.param({}, {}, False, False, id="nothing said"),
        pytest.param({"analytics": {"ballast.dev/gate": "enabled"}}, {}, True, True, id="its namespace"),
        pytest.param({"other": {"ballast.dev/gate": "enabled"}}, {}, False, False, id="another namespace"),
        pytest.param({"analytics": {"ballast.dev/gate": "yes"}}, {}, False, False, id="another word"),
        pytest.param({}, {"labels": {"ballast.dev/topology": "nowhere"}}, True, True, id="a label, nothing declared"),
        pytest.param({}, {"labels": {"ballast.dev/topology": "clicks"}}, True, True, id="a label, and declared"),
        pytest.param({}, {"labels": {"app": "sessions"}}, True, False, id="a topology selects it"),
        pytest.param({}, {"gates": [GATE]}, True, False, id="a pod template with our gate"),
    ],
)
def test_what_opts_in(
    namespaces: dict[str, dict[str, str]], changes: dict[str, Any], opted_in: bool, labeled: bool
) -> None:
    found = belonging(namespaces, **changes)
    assert (found.opted_in, found.labeled) == (opted_in, labeled)


def test_executors_that_differ_by_their_number_alone_are_looked_up_once() -> None:
    membership, reader = Membership([CLICKS], {}), PodReader()
    found = [membership.of(reader.read(executor(n))) for n in (1, 2)]
    assert found[0] is found[1]


def selected(part: int) -> dict[str, Any]:
    chosen = {"key": "part", "operator": "In", "values": [f"p{part}"]}
    return {"name": f"c{part}", "selector": {"matchLabels": {"app": "a"}, "matchExpressions": [chosen]}}


def test_selectors_are_tried_once_on_executors_that_differ_in_labels_no_selector_asks_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each application's executors have labels of their own: a thousand applications cost no more than one."""
    tries, matches = itertools.count(), LabelSelector.matches

    def counted(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
        next(tries)
        return matches(selector, labels)

    monkeypatch.setattr(LabelSelector, "matches", counted)
    membership = Membership([topology("t", namespace="team", components=[selected(n) for n in range(100)])], {})
    reader = PodReader()

    def component(number: int, part: str) -> str:
        labels = {"app": "a", "part": part, "batch": str(number)}
        return membership.of(reader.read(executor(number, namespace="team", labels=labels))).component

    assert {component(number, "p7") for number in range(50)} == {"c7"}
    assert component(50, "p99") == "c99"
    assert next(tries) == 200
