"""`ballast discover`: what it proposes for the pods of a file, and how it refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from ballast.api.topology import SparkTopology
from tests.apiserver import Answer, kubeconfig, scripted
from tests.unit.cli.program import Ended, exit_code, run
from tests.unit.cli.prometheus import answering

EXAMPLE = Path(__file__).parents[3] / "examples/sparktopology.yaml"
MI = 2**20
RATES: dict[str, dict[str, float]] = {
    "totalShuffleRead": {"spark-ingest": 20.2 * MI},
    "totalInputBytes": {"spark-ingest": 40.1 * MI, "spark-sessions": 15.3 * MI},
    "inputRate": {"spark_ingest": 1, "spark_sessions": 1},
}


def _of_applications(query: str) -> Mapping[str, float]:
    return next(found for name, found in RATES.items() if name in query)


def _of_its_driver(application: str) -> Mapping[str, str]:
    return {"namespace": "analytics", "pod": f"{application[6:]}-driver"}


@pytest.fixture
def prometheus() -> Iterator[str]:
    with answering(_of_applications, _of_its_driver) as url:
        yield url


def pod(name: str, namespace: str, phase: str = "Running", **labels: str) -> dict[str, Any]:
    named = {key.replace("__", "/").replace("_", "-"): value for key, value in labels.items()}
    return {"metadata": {"name": name, "namespace": namespace, "labels": named}, "status": {"phase": phase}}


def executors(component: str, count: int, **labels: str) -> list[dict[str, Any]]:
    """As Spark makes them, with the labels that the example asks for."""
    own = {"spark_role": "executor", "spark_app_selector": f"spark-{component}", "spark_app_name": component, **labels}
    return [pod(f"{component}-exec-{n}", "analytics", **own) for n in range(1, count + 1)]


def clickstream(**labels: str) -> list[dict[str, Any]]:
    """What runs where examples/sparktopology.yaml is applied, and some pods that are none of its own."""
    return [
        *executors("ingest", 6, **labels),
        *executors("sessions", 12, **labels),
        pod("ingest-exec-9", "analytics", "Failed", spark_role="executor", spark_app_selector="spark-ingest"),
        pod("ingest-driver", "analytics", spark_role="driver", spark_app_selector="spark-ingest"),
        pod("kafka-0", "kafka", app="kafka"),
        pod("web-0", "analytics", app="web"),
    ]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    named = {"ballast.dev__topology": "clickstream"}
    pods = [
        {**each, "metadata": {**each["metadata"], "labels": {**each["metadata"]["labels"], **_component(each)}}}
        for each in clickstream(**named)
    ]
    (tmp_path / "pods.json").write_text(json.dumps({"items": pods}), encoding="utf-8")
    for name, topic in (("ingest", "clicks"), ("sessions", "sessions")):
        line = {
            "sources": [{"description": f"KafkaV2[Subscribe[{topic}]]"}],
            "sink": {"description": "ForeachBatchSink"},
        }
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(line), encoding="utf-8")
    return tmp_path


def _component(each: dict[str, Any]) -> dict[str, str]:
    labels = each["metadata"]["labels"]
    return {"ballast.dev/component": labels["spark-app-name"]} if "spark-app-name" in labels else {}


def found(*arguments: str) -> tuple[SparkTopology, str]:
    told = run("discover", *arguments)
    assert (told.code, told.err) == (0, "")
    return SparkTopology.parse(yaml.safe_load(told.out)), told.out


def test_it_finds_what_the_clickstream_example_declares_by_hand(files: Path, prometheus: str) -> None:
    by_hand = SparkTopology.parse(yaml.safe_load(EXAMPLE.read_text(encoding="utf-8")))
    topology, _ = found(
        "-f", str(files / "pods.json"), "--prometheus", prometheus,
        "--progress", f"ingest={files / 'ingest.jsonl'}", "--progress", f"sessions={files / 'sessions.jsonl'}",
    )  # fmt: skip
    assert topology.metadata.name == by_hand.metadata.name
    assert topology.metadata.namespace == by_hand.metadata.namespace
    assert topology.spec.components == by_hand.spec.components
    # By hand, one application feeds the other; what runs shows that Kafka is between them.
    assert topology.spec.streams[0] == by_hand.spec.streams[0]
    (second,) = topology.spec.streams[1:]
    assert (second.from_, second.to, second.rate) == ("kafka", "sessions", by_hand.spec.streams[1].rate)


@pytest.mark.parametrize(
    "claimed", [{"namespace": "tenant-b", "pod": "ingest-driver"}, {"namespace": "analytics", "pod": "liar"}], ids=str
)
def test_series_that_another_pod_exports_count_for_no_application(files: Path, claimed: dict[str, str]) -> None:
    with answering(_of_applications, lambda _: claimed) as url:
        topology, text = found("-f", str(files / "pods.json"), "ingest", "--prometheus", url)
    (component,) = topology.spec.components
    assert (component.exchange, component.workload) == (None, None)
    assert "no shuffle was measured" in text


def test_another_namespaces_application_of_nearly_the_same_id_takes_no_series_away(
    files: Path, prometheus: str
) -> None:
    pods = json.loads((files / "pods.json").read_text(encoding="utf-8"))["items"]
    pods.append(pod("liar-exec-1", "tenant-b", spark_role="executor", spark_app_selector="spark_ingest"))
    (files / "pods.json").write_text(json.dumps({"items": pods}), encoding="utf-8")
    told = run("discover", "-A", "-f", str(files / "pods.json"), "--prometheus", prometheus)
    own, _ = sorted(yaml.safe_load_all(told.out), key=lambda each: str(each["metadata"]["namespace"]))
    assert "exchange" in own["spec"]["components"][0]


@pytest.mark.parametrize(
    ("brokers", "chosen"),
    [
        ([{"strimzi.io/cluster": "a", "strimzi.io/broker-role": "true"}] * 2, "a"),
        ([{"strimzi.io/cluster": name, "strimzi.io/broker-role": "true"} for name in "ab"], None),
        ([{"strimzi.io/cluster": "a", "strimzi.io/broker-role": "false", "app.kubernetes.io/name": "kafka"}], None),
        ([{"strimzi.io/cluster": "a", "strimzi.io/name": "a-kafka"}], "a"),
        ([{"strimzi.io/cluster": "a", "strimzi.io/name": "a-kafka-exporter", "strimzi.io/kind": "Kafka"}], None),
    ],
    ids=["one cluster", "two clusters", "controllers", "before node pools", "exporter"],
)
def test_brokers_of_strimzi_are_told_from_its_other_pods(
    files: Path, brokers: list[dict[str, str]], chosen: str | None
) -> None:
    pods = json.loads((files / "pods.json").read_text(encoding="utf-8"))["items"]
    pods = [each for each in pods if each["metadata"]["namespace"] != "kafka"]
    for number, labels in enumerate(brokers):
        broker = pod(f"broker-{number}", "kafka")
        broker["metadata"]["labels"] = labels
        pods.append(broker)
    (files / "pods.json").write_text(json.dumps({"items": pods}), encoding="utf-8")
    topology, _ = found("-f", str(files / "pods.json"), "ingest", "--progress", str(files / "ingest.jsonl"))
    external = [each.external.selector for each in topology.spec.components if each.external is not None]
    ends = [each.match_labels for each in external if each is not None]
    assert [labels["strimzi.io/cluster"] for labels in ends] == ([chosen] if chosen else [])


def test_pods_of_several_namespaces_that_call_themselves_kafka_are_asked_about(files: Path) -> None:
    """The first one that was listed became an end of everybody's topologies."""
    pods = json.loads((files / "pods.json").read_text(encoding="utf-8"))["items"]
    liar = pod("liar-0", "aaa")
    liar["metadata"]["labels"] = {"strimzi.io/kind": "Kafka"}
    pods.insert(0, liar)
    (files / "pods.json").write_text(json.dumps({"items": pods}), encoding="utf-8")
    topology, text = found("-f", str(files / "pods.json"), "ingest", "--progress", str(files / "ingest.jsonl"))
    assert [each.name for each in topology.spec.components] == ["ingest"]
    assert "name its brokers: --external kafka=NAMESPACE/app=kafka" in text


@pytest.mark.parametrize(
    "labels",
    [
        [{"ballast.dev/topology": "t", "ballast.dev/component": f"c{number}"} for number in range(101)],
        [{"ballast.dev/topology": "t", "ballast.dev/component": "No_Name"}],
    ],
    ids=["too many components", "no name"],
)
def test_labels_of_one_namespace_keep_no_other_from_its_proposal(files: Path, labels: list[dict[str, str]]) -> None:
    pods = json.loads((files / "pods.json").read_text(encoding="utf-8"))["items"]
    for number, each in enumerate(labels):
        liar = pod(f"liar-exec-{number}", "aaa", spark_role="executor", spark_app_selector=f"spark-{number}")
        liar["metadata"]["labels"] |= each
        pods.append(liar)
    (files / "pods.json").write_text(json.dumps({"items": pods}), encoding="utf-8")
    told = run("discover", "-A", "-f", str(files / "pods.json"))
    assert [document["metadata"]["namespace"] for document in yaml.safe_load_all(told.out)] == ["analytics"]
    assert (told.code, told.err.count("nothing is proposed in namespace aaa")) == (0, 1)


def test_without_measurements_it_says_what_to_give(files: Path) -> None:
    topology, text = found("-f", str(files / "pods.json"), "-n", "analytics")
    assert [each.name for each in topology.spec.components] == ["ingest", "sessions"]
    for words in ("# Proposed by ballast discover", "give --progress ingest=FILE", "give --prometheus"):
        assert words in text


def test_one_application_can_be_chosen(files: Path) -> None:
    topology, _ = found("-f", str(files / "pods.json"), "sessions")
    assert [each.name for each in topology.spec.components] == ["sessions"]


def test_an_end_can_be_named(files: Path) -> None:
    topology, _ = found(
        "-f", str(files / "pods.json"), "ingest", "--external", "kafka=brokers/app=redpanda",
        "--progress", str(files / "ingest.jsonl"),
    )  # fmt: skip
    external = topology.spec.components[0].external
    assert external is not None
    assert external.namespace == "brokers"


def test_a_name_with_line_breaks_adds_nothing_to_what_is_applied(files: Path) -> None:
    """Who writes the query's progress writes no YAML: it would be applied with its reader's rights."""
    more = "Files[\n---\nkind: ClusterRoleBinding\r\u2028---]"
    line = {"sources": [{"description": more}], "sink": {"description": ""}}
    (files / "ingest.jsonl").write_text(json.dumps(line), encoding="utf-8")
    told = run("discover", "-f", str(files / "pods.json"), "ingest", "--progress", str(files / "ingest.jsonl"))
    assert [document["kind"] for document in yaml.safe_load_all(told.out)] == ["SparkTopology"]
    assert "# ingest: reads Files[ --- kind: ClusterRoleBinding" in told.out


def refused(*arguments: str) -> str:
    told: Ended = run("discover", *arguments)
    assert (told.code, told.out) == (exit_code(told.err), "")
    return told.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("absent",), "no executor of it runs there; there are: ingest, sessions"),
        (("--external", "kafka"), "write NAME=NAMESPACE/LABEL=VALUE"),
        (("--progress", "p.jsonl"), "2 applications are meant; write APPLICATION=FILE"),
        (("--progress", "ingest=absent.jsonl"), "No such file"),
        (("-n", "elsewhere"), "say which namespace with -n"),
        (("--prometheus", "http://127.0.0.1:1"), "name a Prometheus that answers"),
    ],
)
def test_what_cannot_be_told_apart_or_read_is_refused(files: Path, arguments: tuple[str, ...], words: str) -> None:
    assert words in refused("-f", str(files / "pods.json"), *arguments)


def test_executors_without_the_name_of_their_application_are_chosen_by_its_id() -> None:
    """As those of Spark 2.3: a selector by a label that they lack would choose none."""
    topology, text = found("-f", str(Path(__file__).parents[2] / "field" / "kubectl" / "spark-2.3.yaml"), "-A")
    (component,) = topology.spec.components
    assert component.selector is not None
    assert component.selector.match_labels == {"spark-app-selector": "spark-application-1500000000000"}
    assert "chosen by its id, which is another one in each run" in text


def test_settings_of_real_time_mode_alone_tell_no_workload_and_are_noted(files: Path) -> None:
    listed = json.loads((files / "pods.json").read_text(encoding="utf-8"))["items"]
    (driver,) = [each for each in listed if each["metadata"]["name"] == "ingest-driver"]
    volume = {"name": "spark-conf-volume-driver", "configMap": {"name": "ingest-conf"}}
    driver["spec"] = {**driver.get("spec", {}), "volumes": [volume]}
    place = {"name": "ingest-conf", "namespace": driver["metadata"]["namespace"]}
    text = "spark.sql.streaming.realTimeMode.minBatchDuration=5m"
    conf = {"kind": "ConfigMap", "metadata": place, "data": {"spark.properties": text}}
    for each in listed:
        each["kind"] = "Pod"
    (files / "more.yaml").write_text(yaml.safe_dump({"kind": "List", "items": [*listed, conf]}), encoding="utf-8")
    topology, text = found("-f", str(files / "more.yaml"))
    assert {each.name: each.workload for each in topology.spec.components} == {"ingest": None, "sessions": None}
    assert "# ingest: its configuration has settings of Spark's real-time mode: set RealTime if" in text


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"items": [{}]}', "[" * 5000])
def test_a_file_that_is_no_list_of_pods_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "pods.json"
    path.write_text(text, encoding="utf-8")
    assert "kubectl get pods -A -o json" in refused("-f", str(path))
    assert "No such file" in refused("-f", str(tmp_path / "absent"))


@pytest.mark.parametrize(("option", "path"), [("-A", "/api/v1/pods"), ("-n=team", "/api/v1/namespaces/team/pods")])
def test_executors_of_one_namespace_or_of_all_are_asked_for(tmp_path: Path, option: str, path: str) -> None:
    with scripted(Answer(body={"metadata": {}, "items": executors("ingest", 2)})) as server:
        ended = run("discover", option, "--kubeconfig", str(kubeconfig(tmp_path, server.url)))
    assert ended.code == 0, ended.err
    assert server.asked[0].path.partition("?")[0] == path
