from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kafka.errors import ClusterAuthorizationFailedError, CoordinatorNotAvailableError

from ballast.errors import InvalidField
from ballast.grouping.shares import Flow
from ballast.spark.routing import KafkaTopic, PrometheusLoad, kafka, with_partition
from ballast.spark.routing.chooser import Reading, RoutingError

BROKERS: list[dict[str, Any]] = [
    {"broker_id": 1, "host": "n1", "rack": "a"},
    {"broker_id": 2, "host": "n2", "rack": "b"},
]
LEADERS = {0: 1, 1: 2, 2: -1}


class Admin:
    """Kafka's answers for a topic with a partition without a leader; `committed` None: no coordinator of groups."""

    def __init__(
        self, *, error: int = 0, committed: dict[int, int] | None = None, groups: dict[str, str] | None = None
    ) -> None:
        self.error, self.committed, self.groups = error, committed, groups

    def describe_topics(self, topics: list[str]) -> list[dict[str, Any]]:
        partitions = [{"partition_index": part, "leader_id": leader} for part, leader in LEADERS.items()]
        return [{"error_code": self.error, "partitions": partitions}]

    def describe_cluster(self) -> dict[str, Any]:
        return {"brokers": BROKERS}

    def list_group_offsets(self, asked: dict[str, list[Any]]) -> dict[str, dict[Any, Any]]:
        if self.committed is None:
            raise CoordinatorNotAvailableError
        committed = self.committed
        return {
            group: {part: SimpleNamespace(offset=committed.get(part.partition, -1)) for part in parts}
            for group, parts in asked.items()
        }

    def list_groups(self) -> list[dict[str, Any]]:
        if not self.groups:
            raise ClusterAuthorizationFailedError
        return [{"group_id": name, "group_type": kind} for name, kind in self.groups.items()]

    def list_partition_offsets(self, asked: dict[Any, Any], *, timeout_ms: int) -> dict[Any, Any]:
        return {part: SimpleNamespace(offset=100) for part in asked}


def read(monkeypatch: pytest.MonkeyPatch, admin: Admin, **settings: Any) -> list[Any]:
    return list(reading(monkeypatch, admin, **settings).targets)


def reading(monkeypatch: pytest.MonkeyPatch, admin: Admin, **settings: Any) -> Reading:
    monkeypatch.setattr(kafka, "client_of", lambda bootstrap, options: admin)
    kafka.history_of.cache_clear()
    kafka.warn_of_no_commit.cache_clear()
    return KafkaTopic("b:9092", "out", **settings).read()


def test_a_partition_without_a_leader_is_no_target(monkeypatch: pytest.MonkeyPatch) -> None:
    targets = read(monkeypatch, Admin())
    assert [(target.id, target.place.node, target.place.zone) for target in targets] == [(0, "n1", "a"), (1, "n2", "b")]


def test_a_broker_s_rack_can_be_a_rack_within_a_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    targets = read(monkeypatch, Admin(), rack_is="rack")
    assert [(target.place.rack, target.place.zone) for target in targets] == [("a", None), ("b", None)]


def test_what_arrives_is_known_once_the_group_has_committed_an_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    assert reading(monkeypatch, Admin(committed={0: 75}), group="readers").flow == Flow()
    assert reading(monkeypatch, Admin(committed={})).flow is None


@pytest.mark.parametrize("name", ["1", "n1"])
def test_a_partition_is_loaded_as_its_leader_is_next_to_what_arrives(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(PrometheusLoad, "read", lambda load: {name: 0.75})
    busy = PrometheusLoad("http://prometheus", "busy")
    targets = read(monkeypatch, Admin(), broker_load=busy)
    assert [target.load for target in targets] == [0.75, None]
    both = reading(monkeypatch, Admin(committed={0: 0, 1: 50}), group="readers", broker_load=busy)
    assert ([target.load for target in both.targets], both.flow) == ([0.75, None], Flow())


def test_a_part_of_an_address_is_no_broker_s_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PrometheusLoad, "read", lambda load: {"10": 1.0})
    monkeypatch.setitem(BROKERS[0], "host", "10.0.0.1")
    targets = read(monkeypatch, Admin(), broker_load=PrometheusLoad("http://prometheus", "busy"))
    assert [target.load for target in targets] == [None, None]


def test_without_a_coordinator_of_groups_no_load_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [target.load for target in read(monkeypatch, Admin(), group="readers")] == [None, None]
    assert reading(monkeypatch, Admin(), group="readers").flow == Flow()


def test_a_topic_that_is_not_there_is_an_error_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RoutingError, match=r"topic out at b:9092: .*topic or partition that does not exist"):
        read(monkeypatch, Admin(error=3))


@pytest.mark.parametrize(("field", "value"), [("handled_per_second", -5.0), ("rack_is", "region")])
def test_settings_that_make_no_sense_are_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(InvalidField, match=field):
        KafkaTopic("b:9092", "out", **{field: value})


def test_a_key_that_is_no_column_is_refused() -> None:
    """Records with keys were routed as those without, so that the order within a key was lost."""
    frame: Any = SimpleNamespace(columns=["userid", "value"])
    with pytest.raises(InvalidField, match="userid, value"):
        with_partition(frame, KafkaTopic("b:9092", "out"), key="userId")


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ({"readers": "share"}, "readers (a share group) has committed no offset of topic out"),
        ({"others": "consumer"}, "readers (no group that Kafka knows) has committed no offset"),
        ({}, "readers (a group whose type is not known: "),
    ],
)
def test_a_group_without_a_commit_is_warned_of_once_by_its_type(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, groups: dict[str, str], words: str
) -> None:
    """Kafka 4.3.1 answers -1 for a share group and for a group that does not exist alike."""
    targets = read(monkeypatch, Admin(committed={}, groups=groups), group="readers")
    KafkaTopic("b:9092", "out", group="readers").read()
    assert [target.load for target in targets] == [None, None]
    assert [words in message for message in caplog.messages] == [True]
    assert "give broker_load" in caplog.text
