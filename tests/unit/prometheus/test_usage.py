from dataclasses import replace

import pytest

from ballast.prometheus import Answer, ExecutorFrame, NodeFrame, Reading, Series, reading
from ballast.prometheus.envelope import INCOMPLETE
from ballast.prometheus.series import by_pod

NODES = (
    NodeFrame("a", ("10.0.0.1", "fd00::1", "a.internal"), cpu_cores=2.0, memory_bytes=100.0),
    NodeFrame("b", ("10.0.0.2",), cpu_cores=4.0, memory_bytes=100.0, network_bits_per_second=1000.0),
)
EXECUTORS = (
    ExecutorFrame("team", "x-exec-1", "spark-1", "1"),
    ExecutorFrame("team", "x-exec-2", "spark-1", "2"),
)
DRIVERS = {("team", "spark-1"): {"x-driver"}}
DRIVER = {"namespace": "team", "pod": "x-driver"}
"""The labels that the scrape of the driver's pod puts on."""


def _sample(value: str, **labels: str) -> Series:
    return Series(labels, (float(value),))


def _read(failures: dict[str, str] | None = None, **answers: list[Series]) -> Reading:
    return reading(
        {signal: Answer(tuple(series)) for signal, series in answers.items()},
        nodes=NODES,
        executors=EXECUTORS,
        drivers=DRIVERS,
        max_age_seconds=60.0,
        failures=failures or {},
    )


def test_figures_become_ratios_of_the_nodes_own_capacity() -> None:
    found = _read(nodeCpu=[_sample("1", node="a"), _sample("1", node="b")])
    assert [found.nodes[name].cpu_ratio for name in "ab"] == [0.5, 0.25]


@pytest.mark.parametrize("instance", ["10.0.0.1:9100", "10.0.0.1", "[fd00::1]:9100", "fd00::1", "a.internal:9100", "a"])
def test_a_series_without_a_node_label_is_known_by_its_instance(instance: str) -> None:
    found = _read(nodeCpu=[_sample("1", instance=instance)])
    assert found.nodes["a"].cpu_ratio == 0.5


def test_network_needs_a_capacity() -> None:
    found = _read(
        nodeCpu=[_sample("1", node="a"), _sample("1", node="b")],
        nodeNetworkReceive=[_sample("500", node="a"), _sample("500", node="b")],
    )
    assert found.nodes["a"].network_receive_ratio is None
    assert found.nodes["b"].network_receive_ratio == 0.5


def test_a_node_whose_samples_are_old_has_no_figures() -> None:
    found = _read(
        nodeCpu=[_sample("1", node="a"), _sample("1", node="b")],
        nodeAge=[_sample("61", node="a"), _sample("5", node="b")],
    )
    assert set(found.nodes) == {"b"}
    assert found.health.age_seconds == 5.0


def test_figures_go_on_aging_after_they_were_asked_for() -> None:
    cpu = [_sample("1", node="a"), _sample("1", node="b")]
    ages = [_sample("40", node="a"), _sample("5", node="b")]
    found = replace(_read(nodeCpu=cpu, nodeAge=ages), at=1000.0)
    early, later, late = (found.aged(now=now, max_age_seconds=60.0) for now in (1020.0, 1055.0, 1056.0))
    assert (set(early.nodes), early.health.age_seconds) == ({"a", "b"}, 60.0)
    assert (set(later.nodes), later.health.age_seconds) == ({"b"}, 60.0)
    assert (set(late.nodes), late.health.available, late.health.age_seconds) == (set(), False, None)
    assert "metrics.maxAge" in late.health.message


def test_where_nothing_was_asked_nothing_ages() -> None:
    assert Reading().aged(now=1e9, max_age_seconds=60.0) == Reading()


@pytest.mark.parametrize(("warned", "known"), [(["nodeCpu"], True), (["nodeCpu", "nodeMemory"], False)])
def test_no_node_is_idle_by_an_answer_that_may_lack_series(warned: list[str], known: bool) -> None:
    failures = dict.fromkeys(warned, f"{INCOMPLETE}; the server warns: no store")
    vectors = {"nodeCpu": [_sample("0.1", node="a")], "nodeMemory": [_sample("1", node="a")]}
    found = _read(failures=failures, **{name: own for name, own in vectors.items() if name not in warned})
    assert [usage.cpu_ratio for usage in found.nodes.values()] == ([None] if known else [])
    assert (found.health.available, found.health.reason) == (known, "Partial")
    assert "the server warns: no store" in found.health.message


def test_without_an_answer_about_ages_nothing_is_fresh() -> None:
    found = _read(failures={"nodeAge": "no answer in time"}, nodeCpu=[_sample("1", node="a"), _sample("1", node="b")])
    assert not found.nodes
    assert (found.health.available, found.health.reason) == (False, "NoNodeMetrics")
    assert found.health.message == "nodeAge: no answer in time"


def test_a_node_without_an_age_has_no_figures_where_others_have_one() -> None:
    found = _read(nodeCpu=[_sample("1", node="a"), _sample("1", node="b")], nodeAge=[_sample("5", node="b")])
    assert set(found.nodes) == {"b"}


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "-5", "1e308"])
def test_a_value_that_a_node_can_not_have_is_not_used(value: str) -> None:
    found = _read(nodeCpu=[_sample(value, node="a"), _sample("1", node="b")])
    assert set(found.nodes) == {"b"}


def test_series_of_two_replicas_in_a_query_of_the_users_own_are_averaged_when_they_agree() -> None:
    found = _read(nodeCpu=[_sample("1.0", node="a", replica="0"), _sample("1.04", node="a", replica="1")])
    assert found.nodes["a"].cpu_ratio == pytest.approx(0.51)


def test_series_that_disagree_are_no_figure_and_are_told() -> None:
    twice = [_sample("1", node="a"), _sample("2", node="a"), _sample("1", node="b")]
    found = _read(nodeCpu=twice)
    assert set(found.nodes) == {"b"}
    assert (found.health.reason, found.health.message) == ("Partial", "nodeCpu: series of a disagree")


COUNTED = ("nodeCpu", "nodeMemory", "executorCpu", "executorMemory")


def _counted(failures: dict[str, str] | None = None, **answers: list[Series]) -> Reading:
    """As asked by a preset, whose queries are sums and have their sources counted."""
    return reading(
        {signal: Answer(tuple(series)) for signal, series in answers.items()},
        nodes=NODES,
        executors=EXECUTORS,
        drivers=DRIVERS,
        max_age_seconds=60.0,
        failures=failures or {},
        counted=COUNTED,
    )


def test_a_node_with_several_sources_has_no_values_and_others_keep_theirs() -> None:
    found = _counted(
        nodeCpu=[_sample("2", instance="10.0.0.1:9100"), _sample("1", instance="10.0.0.2:9100")],
        nodeMemory=[_sample("50", node="a"), _sample("50", node="b")],
        nodeSources=[_sample("2", instance="10.0.0.1:9100", signal="nodeCpu")],
    )
    assert set(found.nodes) == {"b"}
    assert (found.health.available, found.health.reason) == (True, "MetricsAmbiguous")
    assert found.health.message == (
        "the metrics of node a come from several sources (clusters, replicas of Prometheus or exporters), and are not "
        "used: choose one with metrics.prometheus.matchers"
    )


def test_where_every_node_has_several_sources_there_are_no_metrics() -> None:
    found = _counted(
        nodeCpu=[_sample("2", node="a"), _sample("2", node="b")],
        nodeSources=[_sample("2", node="a", signal="nodeCpu"), _sample("2", node="b", signal="nodeCpu")],
    )
    assert (found.nodes, found.health.available, found.health.reason) == ({}, False, "MetricsAmbiguous")
    assert "the metrics of nodes a, b come from" in found.health.message


def test_two_exporters_of_one_node_are_two_sources_even_if_they_agree() -> None:
    twice = [_sample("1", instance="10.0.0.1:9100"), _sample("1", instance="10.0.0.1:9200")]
    found = _counted(nodeCpu=[*twice, _sample("1", node="b")], nodeSources=[])
    assert set(found.nodes) == {"b"}
    assert found.health.reason == "MetricsAmbiguous"


def test_series_that_a_pod_exports_about_a_node_are_no_second_source_of_it() -> None:
    own, forged = _sample("1", instance="10.0.0.1:9100"), _sample("2", node="a", instance="10.9.9.9:80")
    doubled = _sample("2", node="a", instance="10.9.9.9:80", signal="nodeCpu")
    found = _counted(nodeCpu=[own, forged], nodeSources=[doubled])
    assert found.nodes["a"].cpu_ratio == 0.5
    assert found.health.reason == "Available"


def test_an_executor_with_several_sources_has_no_load() -> None:
    twice = {"namespace": "team", "pod": "x-exec-1", "instance": "10.0.0.1:10250"}
    found = _counted(
        nodeCpu=CPU,
        executorCpu=[_sample("3", **twice)],
        executorMemory=[_sample("50", **twice)],
        executorSources=[_sample("2", **twice, signal="executorCpu")],
    )
    usage = found.executors["team/x-exec-1"]
    assert (usage.cpu_cores, usage.memory_bytes) == (None, 50.0)
    assert "the metrics of executor team/x-exec-1 come from several sources" in found.health.message


@pytest.mark.parametrize(
    ("missing", "nodes", "cores"), [("nodeSources", set(), 1.0), ("executorSources", {"a", "b"}, None)]
)
def test_what_may_have_several_sources_has_no_values(missing: str, nodes: set[str], cores: float | None) -> None:
    executor = _sample("1", namespace="team", pod="x-exec-1")
    found = _counted({missing: "no answer in time"}, nodeCpu=CPU, executorCpu=[executor])
    assert (set(found.nodes), found.executors["team/x-exec-1"].cpu_cores) == (nodes, cores)
    assert found.health.message == f"{missing}: no answer in time"


def test_sources_of_other_clusters_nodes_are_of_no_interest() -> None:
    found = _counted(nodeCpu=CPU, nodeSources=[_sample("2", node="z", signal="nodeCpu")])
    assert (found.health.reason, found.health.message) == ("Available", "")


def test_a_dead_prometheus_is_told() -> None:
    health = _read(failures={"nodeCpu": "can't be reached"}).health
    assert (health.available, health.reason) == (False, "Unreachable")
    assert "can't be reached" in health.message


def test_answers_about_other_nodes_only_are_no_figures() -> None:
    assert _read(nodeCpu=[_sample("1", node="z")]).health.reason == "NoNodeMetrics"


def test_one_failed_query_drops_its_signal_alone() -> None:
    found = _read(failures={"nodeMemory": "parse error"}, nodeCpu=[_sample("1", node="a")])
    assert found.health.available
    assert "nodeMemory: parse error" in found.health.message


def test_executors_are_joined_by_pod_and_by_spark_id() -> None:
    found = _read(
        nodeCpu=[_sample("1", node="a")],
        executorCpu=[_sample("0.5", namespace="team", pod="x-exec-1")],
        executorTaskSeconds=[_sample("2", application_id="spark-1", executor_id="1", **DRIVER)],
        executorBytes=[_sample("300", application_id="spark-1", executor_id="1", **DRIVER)],
        executorSlots=[_sample("0.75", application_id="spark-1", executor_id="1", **DRIVER)],
    )
    usage = found.executors["team/x-exec-1"]
    assert (usage.cpu_cores, usage.task_seconds, usage.task_bytes) == (0.5, 2.0, 300.0)
    assert usage.slot_ratio == 0.75
    assert found.executors["team/x-exec-2"].cpu_cores is None


def test_pressure_and_throttling_are_shares_of_time_and_unknown_where_nothing_counts_them() -> None:
    counted = _read(
        nodeCpu=[_sample("1", node="a")],
        nodePressure=[_sample("1.02", node="a")],
        executorThrottling=[_sample("0.25", namespace="team", pod="x-exec-1")],
    )
    assert counted.nodes["a"].pressure_ratio == 1.0
    assert counted.executors["team/x-exec-1"].throttled_ratio == 0.25
    uncounted = _read(nodeCpu=[_sample("1", node="a")], nodePressure=[], executorThrottling=[])
    assert (uncounted.nodes["a"].pressure_ratio, uncounted.executors["team/x-exec-1"].throttled_ratio) == (None, None)
    assert (uncounted.health.reason, uncounted.health.message) == ("Available", "")


def test_an_applications_state_is_shared_by_its_executors() -> None:
    name = f"metrics_spark_{'0' * 32}_driver_spark_streaming_q_states_usedBytes_Value"
    frames = tuple(ExecutorFrame("t", pod, f"spark-{'0' * 32}", pod) for pod in "ab")
    sources = {"namespace": "t", "pod": "d"}
    series = (
        Series({"__name__": name, **sources}, (100.0,)),
        Series({"__name__": name.replace("_q_", "_r_"), **sources}, (20.0,)),
    )
    found = reading(
        {"stateBytes": Answer(series)}, nodes=NODES, executors=frames, drivers={}, max_age_seconds=60.0, failures={}
    )
    assert found.executors["t/a"].state_bytes == 60.0


def test_batch_durations_are_told_in_seconds() -> None:
    labels = {"application_id": "spark-1", **DRIVER}
    series = Series(labels, tuple(1000.0 * i for i in range(1, 21)), ranged=True)
    found = _read(nodeCpu=[_sample("1", node="a")], batchMilliseconds=[series])
    assert found.batch_p50_seconds == {("team", "spark-1"): 11.0}
    assert found.batch_p95_seconds == {("team", "spark-1"): 20.0}


def test_a_users_own_batch_durations_are_taken_as_they_are_and_the_slowest_query_counts() -> None:
    told = [
        _sample(seconds, application_id="spark-1", query=name, **DRIVER) for name, seconds in (("a", "3"), ("b", "0.5"))
    ]
    found = _read(nodeCpu=[_sample("1", node="a")], batchSeconds=told)
    assert found.batch_p95_seconds == {("team", "spark-1"): 3.0}


def test_one_cause_is_told_once() -> None:
    failures = dict.fromkeys(("nodeAge", "nodeCpu", "nodeMemory", "executorCpu"), "can't be reached")
    assert _read(failures=failures).health.message == "executorCpu, nodeAge, nodeCpu and 1 more: can't be reached"


def test_a_signal_with_fewer_series_than_there_are_is_told() -> None:
    answers = {"nodeCpu": Answer((_sample("1", node="a"),)), "stateBytes": Answer(shortened=True)}
    found = reading(answers, nodes=NODES, executors=[], drivers={}, max_age_seconds=60.0, failures={})
    assert found.health.message == (
        "stateBytes: the answer is too long, so only the largest values of each namespace are read"
    )


CPU = [_sample("1", node="a"), _sample("1", node="b")]
STATE = "1e6"


@pytest.mark.parametrize("value", ["-9e15", "9e15", STATE])
def test_a_series_from_another_namespace_is_not_used_and_its_pod_is_named(value: str) -> None:
    own = _sample(STATE, application_id="spark-1", **DRIVER)
    forged = _sample(value, application_id="spark-1", namespace="tenant-a", pod="evil")
    alone, attacked = (_read(nodeCpu=CPU, stateBytes=series) for series in ([own], [own, forged]))
    assert attacked.executors == alone.executors
    assert attacked.health.available
    named = "series of spark-1 come from pod tenant-a/evil, which is not its driver"
    assert named in attacked.health.message
    assert attacked.dropped["Foreign"] == 1


@pytest.mark.parametrize("signal", ["executorTaskSeconds", "executorBytes", "batchSeconds"])
def test_no_spark_signal_is_taken_from_another_namespace(signal: str) -> None:
    forged = _sample("50", application_id="spark-1", executor_id="1", namespace="tenant-a", pod="evil")
    found = _read(None, **{"nodeCpu": CPU, signal: [forged]})
    usage = found.executors["team/x-exec-1"]
    assert (usage.task_seconds, usage.task_bytes, found.batch_p95_seconds) == (None, None, {})
    assert found.dropped == {"Foreign": 1}


@pytest.mark.parametrize(
    ("labels", "counts"),
    [
        ({"namespace": "team", "pod": "x-driver"}, True),
        ({"namespace": "team", "pod": "x-exec-1"}, False),
        ({"namespace": "team"}, False),
        ({"pod": "x-driver"}, False),
        ({}, False),
    ],
)
def test_where_a_driver_pod_is_known_only_its_series_count(labels: dict[str, str], *, counts: bool) -> None:
    found = _read(nodeCpu=CPU, batchSeconds=[_sample("3", application_id="spark-1", **labels)])
    assert (found.batch_p95_seconds != {}) is counts
    assert (found.dropped == {}) is counts


@pytest.mark.parametrize(
    ("labels", "counts"),
    [
        ({"namespace": "team", "pod": "notebook"}, True),
        ({"namespace": "team"}, True),
        ({"namespace": "tenant-a", "pod": "notebook"}, False),
        ({}, False),
    ],
)
def test_where_no_driver_pod_is_known_the_series_of_the_namespace_count(
    labels: dict[str, str], *, counts: bool
) -> None:
    """In client mode: in a notebook's pod, or outside of the cluster, where the scrape's target names the namespace."""
    found = reading(
        {"batchSeconds": Answer((_sample("3", application_id="spark-1", **labels),))},
        nodes=NODES,
        executors=EXECUTORS,
        drivers={},
        max_age_seconds=60.0,
        failures={},
    )
    assert (found.batch_p95_seconds == {("team", "spark-1"): 3.0}) is counts


def test_two_applications_of_one_id_in_two_namespaces_have_values_of_their_own() -> None:
    frames = tuple(ExecutorFrame(namespace, "x", "spark-1", "1") for namespace in ("one", "two"))
    told = tuple(_sample(f"{i}", application_id="spark-1", namespace=n) for i, n in ((1, "one"), (2, "two")))
    found = reading(
        {"batchSeconds": Answer(told)}, nodes=NODES, executors=frames, drivers={}, max_age_seconds=60.0, failures={}
    )
    assert found.batch_p95_seconds == {("one", "spark-1"): 1.0, ("two", "spark-1"): 2.0}


def test_series_of_an_application_without_executors_are_passed_over() -> None:
    found = _read(nodeCpu=CPU, batchSeconds=[_sample("3", application_id="spark-9", namespace="other", pod="driver")])
    assert (found.health.message, found.dropped) == ("", {})


def test_a_series_that_names_no_application_is_of_no_executor_without_one_either() -> None:
    frames = (ExecutorFrame("team", "x", "", ""),)
    series = Answer((_sample("3", namespace="team", pod="x"),))
    found = reading(
        {"stateBytes": series}, nodes=NODES, executors=frames, drivers={}, max_age_seconds=60.0, failures={}
    )
    assert found.executors["team/x"].state_bytes is None


def test_samples_out_of_range_are_counted_and_reported() -> None:
    series = [_sample("-5", node="a"), _sample("1", node="b")]
    found = _read(nodeCpu=series, batchSeconds=[_sample("-1", application_id="spark-1", **DRIVER)])
    assert found.dropped == {"OutOfRange": 2}
    assert "nodeCpu: samples out of range: 1, first of node=a" in found.health.message
    assert "batchSeconds: samples out of range: 1, first of namespace=team, pod=x-driver" in found.health.message


def test_hostile_names_do_not_reach_a_message_as_they_are() -> None:
    labels = {"namespace": "\x1b[2J\n" + "n" * 400, "pod": "\x1b]0;x\x07"}
    message = _read(nodeCpu=CPU, stateBytes=[_sample("1", application_id="spark-1", **labels)]).health.message
    assert message.isprintable()
    assert len(message) < 500


def test_many_false_claims_take_the_room_of_one() -> None:
    forged = [_sample("1", application_id="spark-1", namespace="tenant-a", pod=f"evil-{i:03}") for i in range(500)]
    message = _read({"nodeMemory": "parse error"}, nodeCpu=CPU, stateBytes=forged).health.message
    assert "tenant-a/evil-000" in message
    assert "498 more such claims" in message
    assert "parse error" in message


@pytest.mark.parametrize("instance", ["10.244.0.7:9090", "10.0.0.2:9100"], ids=["a pod's", "another node's"])
def test_what_is_exported_at_a_nodes_own_address_is_not_contradicted_from_elsewhere(instance: str) -> None:
    """A tenant's pod may export series about its node, and the scrape of its Service may label them with the node."""
    from_node = _sample("1", instance="10.0.0.1:10250", node="a")
    from_pod = _sample("3", instance=instance, node="a")
    for vector in ([from_node, from_pod], [from_pod, from_node]):
        found = _read(nodeCpu=vector)
        assert found.nodes["a"].cpu_ratio == 0.5
        assert found.health.reason == "Available"
    assert _read(nodeCpu=[from_pod]).nodes["a"].cpu_ratio == 1.5


def test_an_instance_that_no_node_goes_by_belongs_to_none_and_ends_nothing() -> None:
    found = _read(nodeCpu=[_sample("1", instance="10.9.9.9:9100"), _sample("1", node="a")])
    assert set(found.nodes) == {"a"}


def test_of_a_pod_its_node_is_believed_and_not_the_pod_itself() -> None:
    """The pod may export the same series, and its scrape says that they are about it."""
    pod = {"namespace": "team", "pod": "app-exec-1"}
    from_node = _sample("0.5", instance="10.0.0.1:10250", **pod)
    from_itself = _sample("300", instance="10.244.0.7:9090", **pod)
    for series in ([from_node, from_itself], [from_itself, from_node]):
        assert by_pod(series, {"10.0.0.1": "a"}).values == {"team/app-exec-1": 0.5}
    unaddressed = [_sample("0.5", **pod)]
    assert by_pod(unaddressed, {"10.0.0.1": "a"}).values == {"team/app-exec-1": 0.5}, "a query of the user's own"
