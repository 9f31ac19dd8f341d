"""The whole report of small pools whose right answer is plain."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ballast.model import Anchor, Component, Executor, ExecutorUsage, Snapshot, Stream, Topology
from ballast.report.exchange import Volume
from ballast.report.findings import ApplicationReport, PoolReport, Verdict
from ballast.report.pool import Known, report
from ballast.report.price import GIB, own_price
from tests.builders import a_node, a_policy, a_snapshot, a_topology, an_executor

ZONES = ("a", "b", "c")


def pool(*executors: Executor, cores: float = 8.0, topologies: tuple[Topology, ...] = ()) -> Snapshot:
    """Two nodes in each of three zones, called a1, a2, b1…"""
    nodes = [a_node(f"{zone}{i}", zone=zone, rack=f"{zone}-r", cores=cores) for zone in ZONES for i in (1, 2)]
    return a_snapshot(*nodes, executors=executors, topologies=topologies)


def on(*nodes: str, application: str = "app", rate: float | None = None) -> list[Executor]:
    usage = ExecutorUsage(shuffle_read_bytes_per_second=rate, shuffle_write_bytes_per_second=rate)
    return [
        replace(
            an_executor(f"{application}-exec-{i}"),
            application=application,
            node=node,
            usage=usage,
            topology=f"team/{application}",
        )
        for i, node in enumerate(nodes)
    ]


def reported(snapshot: Snapshot, **options: object) -> PoolReport:
    return report(snapshot, a_policy(), price=own_price(0.01), **options)  # type: ignore[arg-type]


def only(found: PoolReport) -> ApplicationReport:
    (each,) = found.applications
    return each


def test_an_application_over_three_zones_would_be_in_one() -> None:
    each = only(reported(pool(*on("a1", "b1", "c1", rate=GIB))))
    assert each.verdict is Verdict.GAIN
    assert (each.before.shares.zone, each.after.shares.zone) == pytest.approx((2 / 3, 0.0))
    assert each.saved_dollars_per_month == pytest.approx(2 * 730 * 3600 * 0.02)


def test_one_that_is_in_one_zone_and_rack_has_nothing_to_gain() -> None:
    each = only(reported(pool(*on("a1", "a2", rate=GIB))))
    assert (each.verdict, each.saved_dollars_per_month) == (Verdict.NOTHING_TO_GAIN, 0.0)


def test_where_no_zone_has_room_for_all_nothing_is_promised() -> None:
    """Each node has room for one executor: six executors need all of the six nodes."""
    snapshot = pool(*on("a1", "a2", "b1", "b2", "c1", "c2", rate=GIB), cores=1.0)
    full = replace(snapshot, nodes=tuple(replace(n, requested=n.allocatable) for n in snapshot.nodes))
    each = only(reported(full))
    assert each.verdict is Verdict.NOTHING_TO_GAIN
    assert each.before.shares == each.after.shares


def test_two_applications_are_not_promised_the_same_room() -> None:
    """Two cores a node, two nodes a zone: a zone takes four of the twelve executors."""
    members = [*on("a1", "b1", "c1", "a2", application="one"), *on("b2", "c2", "a1", "b1", application="two")]
    third = on("c1", "a2", "b2", "c2", application="three")
    found = reported(pool(*members, *third, cores=2.0))
    together = [each for each in found.applications if each.after.shares.zone == 0.0]
    assert sum(each.unplaced for each in found.applications) == 0
    assert 0 < len(together) <= 3
    assert sum(each.executors for each in together) <= 12


def test_without_bytes_there_is_a_share_and_no_cost() -> None:
    each = only(reported(pool(*on("a1", "b1"))))
    assert each.before.shares.zone == pytest.approx(0.5)
    assert (each.before.dollars_per_month, each.saved_dollars_per_month) == (None, None)


def test_a_node_without_labels_makes_an_application_unknown() -> None:
    nodes = (a_node("n1", zone=None, rack=None), a_node("n2", zone="a", rack="r"))
    found = report(a_snapshot(*nodes, executors=on("n1", "n2")), a_policy(), price=None)
    assert only(found).verdict is Verdict.UNKNOWN


def test_a_remote_shuffle_service_leaves_nothing_to_place_by() -> None:
    each = only(reported(pool(*on("a1", "b1", rate=GIB)), hints=Known(remote_shuffle=frozenset({"team/app"}))))
    assert (each.verdict, each.relocated, each.saved_dollars_per_month) == (Verdict.NOTHING_TO_GAIN, 0, None)


def reading(*nodes: str) -> list[Executor]:
    """Of each executor 100 B/s, of which half is shuffle with others."""
    return [
        replace(each, usage=replace(each.usage or ExecutorUsage(), bytes_per_second=100.0))
        for each in on(*nodes, rate=37.5)
    ]


def test_what_an_application_reads_from_kafka_is_at_most_the_rest_of_its_traffic() -> None:
    known = Known(kafka=frozenset({"team/app"}))
    reads = only(reported(pool(*reading("a1", "b1", "c1")), hints=known)).reads
    assert reads is not None
    assert reads.volume is Volume.UPPER_BOUND
    assert reads.total_bytes_per_second == pytest.approx(150.0)
    # A third of the partitions has its leader in the executor's zone, and each zone has a replica.
    assert (reads.now, reads.with_client_rack) == pytest.approx((100.0, 0.0))


def test_brokers_in_one_zone_alone_leave_the_option_nothing_and_placement_something() -> None:
    known = Known(kafka=frozenset({"team/app"}), broker_zones=("a",))
    reads = only(reported(pool(*reading("a1", "b1", "c1")), hints=known)).reads
    assert reads is not None
    assert (reads.now, reads.with_client_rack) == pytest.approx((100.0, 100.0))


def test_an_application_that_is_not_known_to_read_kafka_has_no_reads() -> None:
    assert only(reported(pool(*reading("a1", "b1", "c1")))).reads is None


@pytest.mark.parametrize(("zones", "verdict"), [(("a", "b"), Verdict.NOTHING_TO_GAIN), (("a",), Verdict.UNKNOWN)])
def test_workers_in_one_zone_are_worth_a_plan(zones: tuple[str, ...], verdict: Verdict) -> None:
    anchors = tuple(Anchor((zone, None, None), 1 / len(zones)) for zone in zones)
    workers, own = (
        Component("workers", external=True, anchors=anchors),
        Component("ingest", exchange_bytes_per_second=0),
    )
    topology = replace(a_topology(workers, own, streams=(Stream("ingest", "workers"),)), key="team/app")
    each = only(reported(pool(*on("b1", "c1"), topologies=(topology,))))
    assert (each.remote_shuffle, each.verdict) == (True, verdict)


def test_one_executor_shuffles_with_none() -> None:
    assert only(reported(pool(*on("a1", rate=GIB)))).verdict is Verdict.NOTHING_TO_GAIN


def test_applications_in_two_namespaces_are_two_even_by_one_id() -> None:
    first, second = on("a1", "b1")
    found = reported(pool(first, replace(second, namespace="other", uid="other")))
    assert [each.key for each in found.applications] == ["other/app", "team/app"]


def test_a_pool_without_applications_has_an_empty_report() -> None:
    found = reported(pool())
    assert (found.applications, found.saved_dollars_per_month) == ((), 0)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"scheduler": "volcano"}, "not placed: its scheduler volcano is not in placement.schedulerNames"),
        ({"gang": "field spec.schedulingGroup"}, "not placed: it is a gang (field spec.schedulingGroup)"),
    ],
)
def test_an_application_that_is_never_placed_is_promised_nothing(changes: dict[str, str], why: str) -> None:
    """Four executors over three zones, which Ballast would leave alone."""
    members = [replace(each, **changes) for each in on("a1", "b1", "c1", "a2", rate=GIB)]  # type: ignore[arg-type]
    each = only(reported(pool(*members)))
    assert (each.verdict, each.relocated, each.saved_dollars_per_month) == (Verdict.UNKNOWN, 0, 0.0)
    assert each.why == why
    assert each.before.shares == each.after.shares
