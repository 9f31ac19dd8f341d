"""The operator's own series."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.metrics import MetricWrapperBase

from ballast.controller.telemetry import UNUSABLE, Telemetry
from ballast.kube.client import Action
from ballast.model import Cause, ConditionReason, LocalityView, MetricsHealth, MovePhase, NodeView, Phase, Unplaced
from tests.builders import a_move, an_executor
from tests.metrics_page import FILE, metrics, rendered

NODES = (("a", 50.0), ("b", 90.0))


def policies(telemetry: Telemetry) -> set[str]:
    """Those that any series is about."""
    samples = (sample for metric in telemetry.registry.collect() for sample in metric.samples)
    return {sample.labels["policy"] for sample in samples if "policy" in sample.labels}


def test_a_policy_that_is_gone_leaves_no_series() -> None:
    telemetry = Telemetry(CollectorRegistry())
    for name in ("streaming", "batch"):
        telemetry.introduce(name)
        telemetry.last_pass.labels(name).set(1.0)
        telemetry.metrics_at.labels(name).set(1.0)
        telemetry.pass_seconds.labels(name).observe(0.1)
        telemetry.keep_nodes(name, [NodeView("a", ("z", "r", "a"), 50.0, 50.0, 1)])
        telemetry.keep_executors(name, [an_executor("clicks-exec-1", node="a")])
        telemetry.keep_localities(name, [travels("a/clicks", cross_zone=0.5)])
        telemetry.keep_moves(name, [], {"0": 1})
        telemetry.keep_health(name, MetricsHealth())
        telemetry.interval.labels(name).set(60.0)
    assert policies(telemetry) == {"streaming", "batch"}
    telemetry.forget("batch")
    assert policies(telemetry) == {"streaming"}
    telemetry.forget("batch")


def test_figures_that_are_there_no_more_leave_no_series() -> None:
    telemetry = Telemetry(CollectorRegistry())

    def told() -> list[float | None]:
        names = ("ballast_metrics_age_seconds", "ballast_pool_gap_points")
        return [telemetry.registry.get_sample_value(name, {"policy": "streaming"}) for name in names]

    telemetry.keep_age("streaming", None)
    telemetry.keep_nodes("streaming", [])
    assert told() == [None, None]
    telemetry.keep_age("streaming", 12.0)
    telemetry.keep_nodes("streaming", [NodeView(name, ("z", "r", name), score, score, 1) for name, score in NODES])
    assert told() == [12.0, 40.0]
    telemetry.keep_age("streaming", None)
    telemetry.keep_nodes("streaming", [NodeView("a", ("z", "r", "a"), None, None, 1)])
    assert told() == [None, None]


def places(telemetry: Telemetry) -> set[tuple[str, ...]]:
    samples = (sample for metric in telemetry.registry.collect() for sample in metric.samples)
    names = ("policy", "namespace", "pod", "node", "application")
    return {
        tuple(sample.labels[name] for name in names) for sample in samples if sample.name == "ballast_executor_info"
    }


def test_executors_are_told_to_be_where_they_are_and_those_that_went_are_not() -> None:
    telemetry = Telemetry(CollectorRegistry())
    first = [
        an_executor("clicks-exec-1", node="a", application="spark-1"),
        an_executor("clicks-exec-2", node="b", application="spark-1", phase=Phase.LEAVING),
        an_executor("clicks-exec-3", node=None, application="spark-1", phase=Phase.PENDING),
        an_executor("clicks-exec-4", node="b", application="spark-1", phase=Phase.ENDED),
    ]
    telemetry.keep_executors("streaming", first)
    (space,) = {each.namespace for each in first}
    assert places(telemetry) == {
        ("streaming", space, "clicks-exec-1", "a", "spark-1"),
        ("streaming", space, "clicks-exec-2", "b", "spark-1"),
    }
    telemetry.keep_executors("streaming", [first[0], an_executor("clicks-exec-3", node="b", application="spark-1")])
    assert places(telemetry) == {
        ("streaming", space, "clicks-exec-1", "a", "spark-1"),
        ("streaming", space, "clicks-exec-3", "b", "spark-1"),
    }


def test_executors_whose_label_names_nothing_are_counted_until_they_are_gone() -> None:
    telemetry = Telemetry(CollectorRegistry())

    def told() -> float | None:
        return telemetry.registry.get_sample_value("ballast_unknown_topology_executors", {"policy": "streaming"})

    stray = an_executor("clicks-exec-1", node="a", unknown_topology="click")
    held = an_executor("clicks-exec-2", phase=Phase.GATED, unknown_topology="click")
    ended = an_executor("clicks-exec-3", phase=Phase.ENDED, unknown_topology="click")
    telemetry.keep_executors("streaming", [stray, held, ended, an_executor("clicks-exec-4", node="a")])
    assert told() == 2.0
    telemetry.keep_executors("streaming", [])
    assert told() == 0.0


def test_causes_of_no_policy_have_no_series_of_one() -> None:
    telemetry = Telemetry(CollectorRegistry())
    telemetry.keep_unplaced("ads", [Unplaced("team/e-1", Cause.NO_ROOM, "")])
    (gauge,) = [each for each in telemetry.registry.collect() if each.name == "ballast_unplaced_executors"]
    counts = {sample.labels["cause"]: sample.value for sample in gauge.samples}
    assert (counts["NoRoom"], counts["Waiting"]) == (1.0, 0.0)
    assert "PolicyMissing" not in counts


def test_the_page_lists_every_metric_with_its_type_labels_and_help() -> None:
    assert FILE.read_text(encoding="utf-8") == rendered(), "run `make generate`"
    assert "ballast_build_info" in {metric.name for metric in metrics()}


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [
        pytest.param("gate_hold", 9.9, 10.1, id="the longest gate timeout"),
        pytest.param("gate_hold", 14.9, 15.1, id="what fail-open promises"),
        pytest.param("pass_seconds", 0.9, 1.1, id="a pass that is slower than the shortest interval"),
    ],
)
def test_histograms_tell_what_is_promised_from_what_is_not(name: str, one: float, other: float) -> None:
    telemetry = Telemetry(CollectorRegistry())
    histogram: Histogram = vars(telemetry)[name]
    for seconds in (one, other):
        histogram.labels("streaming").observe(seconds)
    samples = [sample for metric in histogram.collect() for sample in metric.samples if "le" in sample.labels]
    assert {0.0, 1.0, 2.0} == {sample.value for sample in samples}


@pytest.mark.parametrize(("seconds", "noted"), [(15.0, 0.0), (15.1, 100.0)])
def test_the_time_of_a_hold_that_was_too_long_is_kept(seconds: float, noted: float) -> None:
    name = "ballast_gated_too_long_timestamp_seconds"
    released, still_gated = Telemetry(CollectorRegistry()), Telemetry(CollectorRegistry())
    released.count_hold("streaming", seconds, now=100.0)
    released.count_hold("streaming", 1.0, now=200.0)
    still_gated.note_gated(seconds, now=100.0)
    assert [each.registry.get_sample_value(name) for each in (released, still_gated)] == [noted, noted]
    assert value(released, "ballast_gate_hold_seconds_count") == 2.0


def test_holds_are_counted_from_zero_on() -> None:
    telemetry = Telemetry(CollectorRegistry())
    telemetry.introduce("streaming")
    assert value(telemetry, "ballast_gate_hold_seconds_count") == 0.0


def test_a_reading_that_no_pass_can_use_is_shown_until_one_can_be_used() -> None:
    telemetry = Telemetry(CollectorRegistry())

    def reasons() -> set[ConditionReason]:
        return {each for each in UNUSABLE if value(telemetry, "ballast_metrics_unusable", reason=each) == 1.0}

    telemetry.keep_health("streaming", MetricsHealth(reason=ConditionReason.UNREACHABLE))
    assert reasons() == {ConditionReason.UNREACHABLE}
    telemetry.keep_health("streaming", MetricsHealth(available=True, reason=ConditionReason.AVAILABLE))
    assert reasons() == set()
    assert value(telemetry, "ballast_metrics_unusable", reason="Unreachable") == 0.0


def test_every_metric_is_on_the_operators_own_page() -> None:
    telemetry = Telemetry(CollectorRegistry())
    mine = {each._name for each in vars(telemetry).values() if isinstance(each, MetricWrapperBase)}
    assert {family.name for family in telemetry.registry.collect()} >= mine


def test_requests_are_counted_by_verb_resource_and_answer() -> None:
    telemetry = Telemetry(CollectorRegistry())
    telemetry.count_request(Action("create", "pods/eviction", "ns/p"), 429)
    labels = {"verb": "create", "resource": "pods/eviction", "code": "429"}
    assert telemetry.registry.get_sample_value("ballast_api_requests_total", labels) == 1.0


def value(telemetry: Telemetry, name: str, **labels: str) -> float | None:
    return telemetry.registry.get_sample_value(name, {"policy": "streaming", **labels})


def travels(topology: str, *, cross_zone: float | None, bytes_per_second: float | None = None) -> LocalityView:
    return LocalityView(topology, cross_zone, 0.5, 0.5, bytes_per_second, cost=1.0)


def test_how_far_traffic_travels_is_told_of_the_topologies_that_there_are() -> None:
    telemetry = Telemetry(CollectorRegistry())
    telemetry.keep_localities(
        "streaming", [travels("a/clicks", cross_zone=0.25, bytes_per_second=100.0), travels("a/ads", cross_zone=0.0)]
    )
    assert value(telemetry, "ballast_topology_cross_zone_ratio", topology="a/clicks") == 0.25
    assert value(telemetry, "ballast_topology_cross_zone_bytes_per_second", topology="a/clicks") == 100.0
    assert value(telemetry, "ballast_topology_cross_zone_bytes_per_second", topology="a/ads") is None
    telemetry.keep_localities("streaming", [travels("a/ads", cross_zone=None)])
    assert value(telemetry, "ballast_topology_cross_zone_ratio", topology="a/clicks") is None
    assert value(telemetry, "ballast_topology_cross_zone_ratio", topology="a/ads") is None
    assert value(telemetry, "ballast_topology_cross_rack_ratio", topology="a/ads") == 0.5


def test_open_moves_are_counted_by_phase_and_those_of_other_policies_are_not() -> None:
    telemetry = Telemetry(CollectorRegistry())
    moves = [
        a_move("m1", phase=MovePhase.LEAVING),
        a_move("m2", phase=MovePhase.PROPOSED),
        a_move("m3", phase=MovePhase.LEAVING, elsewhere=True),
        a_move("m4", phase=MovePhase.SUCCEEDED),
    ]
    telemetry.keep_moves("streaming", moves, {"0": 3, "2": 1})
    assert value(telemetry, "ballast_open_moves", phase="Leaving") == 1
    assert value(telemetry, "ballast_open_moves", phase="Proposed") == 1
    assert value(telemetry, "ballast_open_moves", phase="Succeeded") is None
    assert value(telemetry, "ballast_budget_moves_left", budget="2") == 1
    telemetry.keep_moves("streaming", [], {"0": 4})
    assert value(telemetry, "ballast_open_moves", phase="Leaving") == 0
    assert value(telemetry, "ballast_budget_moves_left", budget="0") == 4
    assert value(telemetry, "ballast_budget_moves_left", budget="2") is None
