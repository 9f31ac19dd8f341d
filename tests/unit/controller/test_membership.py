from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from ballast.api.labels import LabelSelector
from ballast.controller.membership import MOST_TRIED, MOST_UNDECLARED, OTHERS, Belonging, Membership
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


def test_selectors_of_one_namespace_are_tried_so_often_and_no_more() -> None:
    """A tenant creates both the selectors and the executors that they are tried on."""
    each = 100
    several = [selected(n) for n in range(each)]
    flood = [topology(f"t{n}", namespace="tenant", components=several) for n in range(MOST_TRIED // each)]
    membership, reader = Membership([CLICKS, *flood], {}), PodReader()

    def owner(number: int, app: str, namespace: str) -> str:
        labels = {"app": app, "part": "p7", "batch": str(number)}
        return membership.of(reader.read(executor(number, namespace=namespace, labels=labels))).topology

    assert owner(1, "other", "tenant") == "tenant/spark-1"
    assert owner(2, "a", "tenant") == "tenant/t0"
    assert not membership.exceeds_limit("tenant")
    assert owner(3, "a", "tenant") == "tenant/spark-1"
    assert membership.exceeds_limit("tenant")
    assert owner(4, "sessions", "analytics") == "analytics/clicks"
    assert not membership.exceeds_limit("analytics")


def test_selectors_of_many_namespaces_are_tried_four_times_as_often_as_those_of_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One user may have many namespaces."""
    monkeypatch.setattr("ballast.controller.membership.MOST_TRIED", 100)
    tries, matches = itertools.count(), LabelSelector.matches

    def counted(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
        next(tries)
        return matches(selector, labels)

    monkeypatch.setattr(LabelSelector, "matches", counted)
    spaces = [f"tenant-{number}" for number in range(20)]
    flood = [topology("t", namespace=space, components=[selected(n) for n in range(10)]) for space in spaces]
    membership, reader = Membership([CLICKS, *flood], {}), PodReader()

    def owner(number: int, app: str, namespace: str) -> str:
        labels = {"app": app, "part": "p7", "batch": str(number)}
        return membership.of(reader.read(executor(number, namespace=namespace, labels=labels))).topology

    for space in spaces:
        owners = [owner(number, "a", space) for number in range(10)]
        assert space not in spaces[:4] or set(owners) == {f"{space}/t"}
    assert next(tries) <= 7 * 100
    assert owner(4, "sessions", "analytics") == "analytics/clicks"


def test_selectors_of_a_topology_that_executors_name_count_among_those_that_are_tried() -> None:
    each = 100
    named = topology("t", namespace="tenant", components=[selected(n) for n in range(each)])
    membership, reader = Membership([named], {}), PodReader()

    def component(number: int, **more: str) -> str:
        labels = {"ballast.dev/topology": "t", "app": "a", "part": "p99", "batch": str(number), **more}
        return membership.of(reader.read(executor(number, namespace="tenant", labels=labels))).component

    assert component(0) == "c99"
    assert {component(number) for number in range(1, MOST_TRIED // each)} == {"c99", "profile-0"}
    assert component(MOST_TRIED) == "profile-0"
    assert component(MOST_TRIED, **{"ballast.dev/component": "c98"}) == "c98"
    assert membership.exceeds_limit("tenant")
