from __future__ import annotations

import pytest

from ballast.model import Component, Resources, Workload
from ballast.simulation.recorded.executors import recorded_fleet, recorded_slots, recorded_topologies
from ballast.simulation.recorded.known import Known, known
from ballast.simulation.recorded.slots import slots
from tests.builders import GIB, a_node, a_snapshot, a_topology, an_executor
from tests.unit.simulation.recordings import executor, recording

RUN, OTHER_RUN = "clicks-0123456789abcdef", "clicks-fedcba9876543210"
SEEN = known(
    a_snapshot(
        a_node("n1", requested=Resources(1.5, 3 * GIB, 4)),
        a_node("n2", zone="z2"),
        executors=(an_executor(f"{RUN}-exec-1", node="n1", cores=2.0, state_bytes=500.0),),
        topologies=(a_topology(Component("ingest", workload=Workload.BATCH)),),
    )
)


@pytest.mark.parametrize(
    ("application", "pods", "found"),
    [
        ("spark-app", RUN, True),
        ("spark-other", OTHER_RUN, True),
        (RUN, RUN, True),
        ("spark-other", "views-fedcba9876543210", False),
    ],
    ids=["the same run", "another run of it", "no id is recorded", "another application"],
)
def test_an_application_is_known_in_all_of_its_runs(application: str, pods: str, found: bool) -> None:
    assert (SEEN.application("team", application, pods) is not None) == found
    assert SEEN.application("elsewhere", application, pods) is None


def test_executors_of_a_recording_get_what_the_snapshot_knows_of_their_application() -> None:
    given = recording(
        [
            executor(1, 0, name=f"{OTHER_RUN}-exec-1", application="spark-new", request_cores=None),
            executor(2, 1, name="views-exec-2"),
        ]
    )
    executor_slots = recorded_slots(given, slots(given), SEEN)
    strange, clicks = sorted(executor_slots.apps, key=lambda app: app.name)
    assert (clicks.topology, clicks.component, clicks.workload) == ("team/clicks", "ingest", Workload.BATCH)
    assert (clicks.cores, clicks.requests.cpu_cores, clicks.state_bytes) == (2.0, 1.0, 500.0)
    assert (strange.topology, strange.workload, strange.state_bytes) == ("team/app", Workload.STREAMING, 0.0)
    assert [topology.key for topology in recorded_topologies(executor_slots, SEEN)] == ["team/app", "team/clicks"]


def test_an_implicit_topology_is_of_one_run_alone() -> None:
    implicit = known(
        a_snapshot(
            executors=(an_executor(f"{RUN}-exec-1", topology="team/spark-app", component="0"),),
            topologies=(a_topology(key="team/spark-app", implicit=True),),
        )
    )
    given = recording([executor(1, 0, name=f"{OTHER_RUN}-exec-1", application="spark-new")])
    (app,) = recorded_slots(given, slots(given), implicit).apps
    assert app.topology == "team/spark-new"


def test_nodes_of_a_recording_get_their_places_and_what_others_request_there() -> None:
    fleet = recorded_fleet(recording(), SEEN)
    assert fleet.foreign is not None
    assert fleet.foreign.tolist() == [[0.5, 2 * GIB, 3.0], [0.0, 0.0, 0.0]]
    bare = recorded_fleet(recording(), Known())
    assert bare.foreign is not None
    assert not bare.foreign.any()
    assert bare.speed.tolist() == [1.0, 1.0]
