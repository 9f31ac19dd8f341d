"""A topology from what runs: components, ends, streams and rates, and notes on what could not be told."""

from __future__ import annotations

from typing import Any

import pytest

from ballast.api.topology import SparkTopology
from ballast.errors import InvalidField
from ballast.planner.discovery import (
    Application,
    End,
    Flow,
    NothingFoundError,
    Proposal,
    Query,
    Seen,
    dns_label,
    proposed,
    quantity,
    query_of,
)

KAFKA = End("kafka", "kafka", {"app": "kafka"})


def app(name: str = "clicks", **changes: Any) -> Application:
    return Application(**{"namespace": "team", "id": f"spark-{name}", "name": name, "executors": 3, **changes})


def only(seen: Seen, **options: Any) -> Proposal:
    (found,) = proposed(seen, **options)
    SparkTopology.parse(dict(found.document))
    return found


def spec(seen: Seen, **options: Any) -> dict[str, Any]:
    found: dict[str, Any] = only(seen, **options).document["spec"]
    return found


def test_nothing_that_runs_is_refused() -> None:
    with pytest.raises(NothingFoundError, match="-n"):
        proposed(Seen(()))


def test_an_application_without_labels_is_a_component_chosen_by_its_name() -> None:
    assert spec(Seen([app()])) == {
        "components": [{"name": "clicks", "selector": {"matchLabels": {"spark-app-name": "clicks"}}, "executors": 3}]
    }
    notes = "\n".join(only(Seen([app()])).notes)
    for words in (
        "set Streaming, RealTime, Batch or Interactive",
        "--progress clicks=FILE",
        "give --prometheus",
        "label it",
    ):
        assert words in notes


def test_labeled_executors_need_no_selector() -> None:
    labeled = app(topology="clickstream", component="ingest")
    found = only(Seen([labeled]))
    assert found.document["metadata"] == {"name": "clickstream", "namespace": "team"}
    assert found.document["spec"]["components"] == [{"name": "ingest", "executors": 3}]


def test_applications_with_one_topology_label_are_put_together_and_others_are_not() -> None:
    apps = [app("a", topology="t", component="a"), app("b", topology="t", component="b"), app("c")]
    found = proposed(Seen(apps))
    assert [[each["name"] for each in one.document["spec"]["components"]] for one in found] == [["a", "b"], ["c"]]


def test_a_name_puts_all_into_one_topology() -> None:
    found = spec(Seen([app("a"), app("b")]), name="all")
    assert [each["name"] for each in found["components"]] == ["a", "b"]


def test_each_resource_profile_is_a_component() -> None:
    found = spec(Seen([app(), app(profile="1")]), name="clicks")
    assert [each["name"] for each in found["components"]] == ["clicks", "clicks-profile-1"]


def test_kafka_that_is_read_and_written_gives_streams_with_their_rate() -> None:
    seen = Seen(
        [app("a"), app("b")],
        [KAFKA, End("other", "else", {"app": "x"})],
        {"spark-a": Query(("clicks",), to_kafka=True), "spark-b": Query(("sessions",))},
        {("team", "spark-a"): Flow(exchange=20 * 2**20, arriving=40 * 2**20)},
    )
    found = spec(seen, name="all")
    assert found["components"][0] == {
        "name": "kafka",
        "external": {"namespace": "kafka", "selector": {"matchLabels": {"app": "kafka"}}},
    }
    assert found["components"][1]["workload"] == "Streaming"
    assert found["components"][1]["exchange"] == {"bytesPerSecond": "20Mi"}
    assert found["streams"] == [
        {"from": "kafka", "to": "a", "grouping": "LocalOrShuffle", "rate": {"bytesPerSecond": "40Mi"}},
        {"from": "a", "to": "kafka"},
        {"from": "kafka", "to": "b", "grouping": "LocalOrShuffle"},
    ]
    assert "kafka: namespace kafka must be one of the policy's externalNamespaces." in only(seen, name="all").notes


def test_a_source_that_is_not_kafka_is_the_end_that_the_user_named() -> None:
    query = Query(others=("FileStreamSource[file:/data]",))
    seen = Seen([app()], [KAFKA, End("broker", "brokers", {"app": "broker"})], {"spark-clicks": query})
    assert spec(seen)["streams"] == [{"from": "broker", "to": "clicks", "grouping": "LocalOrShuffle"}]
    assert any("reads FileStreamSource[file:/data]: check" in note for note in only(seen).notes)


def test_kafka_whose_brokers_are_not_known_is_asked_for() -> None:
    found = only(Seen([app()], (), {"spark-clicks": Query(("clicks",))}))
    assert "streams" not in found.document["spec"]
    assert any("--external kafka=NAMESPACE/app=kafka" in note for note in found.notes)


def test_a_streaming_query_is_also_known_by_its_metrics() -> None:
    found = spec(Seen([app()], (), {}, {("team", "spark-clicks"): Flow(streaming=True)}))
    assert found["components"][0]["workload"] == "Streaming"


PROGRESS = (
    '{"sources": [{"description": "KafkaV2[Subscribe[clicks, views]]"}, {"description": "RateStream[1]"}],'
    ' "sink": {"description": "org.apache.spark.sql.kafka010.KafkaSourceProvider$KafkaTable@1"}}'
)


def test_progress_tells_topics_sinks_and_other_sources() -> None:
    assert query_of([PROGRESS, "", PROGRESS], "p") == Query(("clicks", "views"), True, ("RateStream[1]",))


@pytest.mark.parametrize("lines", [[], ["no JSON"], ["{}"], ["[]"], ['{"sources": [1]}']])
def test_what_is_no_progress_is_refused(lines: list[str]) -> None:
    with pytest.raises(InvalidField, match="--progress"):
        query_of(lines, "p")


@pytest.mark.parametrize(
    ("amount", "text"),
    [(0.2, "1"), (700.0, "700"), (2048.0, "2Ki"), (20.4 * 2**20, "20Mi"), (1234 * 2**20, "1200Mi"), (2**20, "1Mi")],
)
def test_bytes_per_second_are_written_with_two_digits(amount: float, text: str) -> None:
    assert quantity(amount) == text


@pytest.mark.parametrize(("text", "label"), [("My App_1", "my-app-1"), ("___", "application"), ("x" * 80, "x" * 63)])
def test_any_name_becomes_a_label(text: str, label: str) -> None:
    assert dns_label(text) == label
