"""What users see of our kinds: explanations, columns, names; and what a status may hold."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from tests.cluster.crds.server import Server
from tests.cluster.crds.table import Case, cases
from tests.testbed.testbed import Testbed

pytestmark = pytest.mark.cluster
EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))
CONDITION = {
    "type": "Ready",
    "status": "True",
    "reason": "Placed",
    "message": "6 executors on 3 nodes",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
    "observedGeneration": 1,
}


def base_of(kind: str) -> Case:
    return next(case for case in cases("good") if case.kind == kind)


def test_streams_are_explained(control_plane: Testbed, crd_server: Server) -> None:
    text = flat(control_plane.kubectl("explain", "sparktopology.spec.streams"))

    assert "Data flows: sender, receiver, rate and partitioning." in text
    assert "from <string> -required- The sending component's name." in text
    assert "rate <Object> How much flows." in text


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("bpol.spec.placement.gateTimeout", "Maximum gating time, 1s to 10s"),
        ("bpol.spec.shedding.avgShedder", "Parameters of AvgShedder"),
        ("bpol.spec.moves.settle", "at least window plus interval"),
        ("emove.spec.executor.uid", "so that no namesake is ever moved"),
        ("gsw.spec.gating", "Whether any executor is gated at all"),
        ("stopo.status.locality.crossZoneRatio", "crosses zones"),
    ],
)
def test_fields_are_explained_under_short_names(
    path: str, says: str, control_plane: Testbed, crd_server: Server
) -> None:
    assert re.search(says, flat(control_plane.kubectl("explain", path)))


def test_every_field_of_every_kind_is_explained(control_plane: Testbed, crd_server: Server) -> None:
    for kind in ("stopo", "bpol", "emove", "gsw"):
        text = control_plane.kubectl("explain", kind, "--recursive")
        assert "spec" in text
        assert "<no description>" not in control_plane.kubectl("explain", f"{kind}.spec")


def test_one_category_lists_all_kinds(control_plane: Testbed, crd_server: Server) -> None:
    listed = control_plane.kubectl("api-resources", "--categories=ballast", "--output=name").split()

    assert sorted(listed) == [
        "balancingpolicies.ballast.dev",
        "executormoves.ballast.dev",
        "gateswitches.ballast.dev",
        "sparktopologies.ballast.dev",
    ]


def test_a_fresh_object_is_not_taken_for_ready(control_plane: Testbed, crd_server: Server) -> None:
    with crd_server.existing(base_of("sparktopology").object) as stored:
        assert stored["status"] == {"observedGeneration": -1}


def test_the_columns_of_a_topology_come_from_its_status(control_plane: Testbed, crd_server: Server) -> None:
    topology = base_of("sparktopology").object
    status = {
        "observedGeneration": 1,
        "conditions": [CONDITION],
        "policy": "streaming",
        "executors": {"text": "5/6", "running": 5, "expected": 6, "gated": 1},
        "locality": {"crossZoneRatio": 0.12, "crossRackRatio": 0.3},
    }

    with crd_server.existing(topology):
        answer = crd_server.patch_status(topology, status)
        table = control_plane.kubectl("get", "stopo", "clickstream")

    assert (answer.code, answer.body.get("status")) == (200, status)
    header, row = (re.split(r"\s{2,}", line.strip()) for line in table.splitlines())
    assert header == ["NAME", "READY", "EXECUTORS", "GATED", "CROSS-ZONE", "CROSS-RACK", "POLICY", "AGE"]
    assert row[:-1] == ["clickstream", "True", "5/6", "1", "0.12", "0.3", "streaming"]


def test_the_columns_of_a_policy_come_from_its_spec_and_status(control_plane: Testbed, crd_server: Server) -> None:
    policy = base_of("balancingpolicy").object
    status = {
        "observedGeneration": 1,
        "nodes": {"total": 6, "eligible": 5, "stale": 1, "mean": 48.5, "stdDev": 12.1, "gap": 40},
        "moved": 3,
        "conditions": [
            {**CONDITION, "type": "Balanced", "status": "False", "reason": "GapTooWide"},
            {**CONDITION, "type": "MetricsAvailable", "status": "True", "reason": "Available"},
            {**CONDITION, "type": "Ready", "status": "True", "reason": "Reconciled"},
        ],
    }

    with crd_server.existing(policy):
        answer = crd_server.patch_status(policy, status)
        table = control_plane.kubectl("get", "bpol", "streaming")

    assert (answer.code, answer.body.get("status")) == (200, status)
    header, row = (line.split() for line in table.splitlines())
    assert header == [
        "NAME",
        "READY",
        "PLACEMENT",
        "MOVES",
        "STOPPED",
        "NODES",
        "METRICS",
        "MEAN",
        "STD",
        "GAP",
        "MOVED",
        "BALANCED",
        "AGE",
    ]
    assert row[:-1] == [
        "streaming",
        "True",
        "Recommend",
        "Recommend",
        "false",
        "5",
        "Available",
        "48.5",
        "12.1",
        "40",
        "3",
        "False",
    ]


def test_the_columns_of_a_move_come_from_its_spec_and_status(control_plane: Testbed, crd_server: Server) -> None:
    move = base_of("executormove").object
    status = {
        "observedGeneration": 1,
        "phase": "Succeeded",
        "reason": "Helped",
        "replacement": {"pod": "ingest-exec-9", "uid": "u9", "node": "n3", "pinned": True},
        "measured": {"gain": 41.5},
    }

    with crd_server.existing(move):
        answer = crd_server.patch_status(move, status)
        short = control_plane.kubectl("get", "emove", "clickstream-ingest-4")
        wide = control_plane.kubectl("get", "emove", "clickstream-ingest-4", "--output=wide")

    assert (answer.code, answer.body.get("status")) == (200, status)
    columns = {
        "NAME": "clickstream-ingest-4",
        "PHASE": "Succeeded",
        "REASON": "Helped",
        "EXECUTOR": "ingest-exec-4",
        "FROM": "n1",
        "TO": "n2",
        "GAIN": "41.5",
    }
    more = {"TOPOLOGY": "clickstream", "REPLACEMENT": "ingest-exec-9", "LANDED": "n3"}
    assert _shown(short) == columns
    assert _shown(wide) == columns | more


def _shown(table: str) -> dict[str, str]:
    """The one row by its columns, except for its age."""
    header, row = (line.split() for line in table.splitlines())
    found = dict(zip(header, row, strict=True))
    del found["AGE"]
    return found


def test_a_status_that_is_not_of_the_schema_is_refused(crd_server: Server) -> None:
    move = base_of("executormove").object

    with crd_server.existing(move):
        unknown_phase = crd_server.patch_status(move, {"phase": "Flying"})
        unknown_field = crd_server.patch_status(move, {"mood": "good"})

    assert (unknown_phase.code, "status.phase" in unknown_phase.message) == (422, True)
    assert (unknown_field.code, "status.mood" in unknown_field.message) == (422, True)


def test_the_wait_command_understands_the_conditions(control_plane: Testbed, crd_server: Server) -> None:
    topology = base_of("sparktopology").object

    with crd_server.existing(topology):
        crd_server.patch_status(topology, {"observedGeneration": 1, "conditions": [CONDITION]})
        said = control_plane.kubectl("wait", "--for=condition=Ready", "stopo/clickstream", "--timeout=60s")

    assert "condition met" in said


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_taken_without_a_warning(path: Path, crd_server: Server) -> None:
    for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
        # Under its own name: what an operator has left behind may have the example's.
        metadata = {**document["metadata"], "namespace": "default", "name": f"read-{document['metadata']['name']}"}
        answer = crd_server.create({**document, "metadata": metadata})
        assert (answer.code, answer.warnings) == (201, ""), answer.message


def flat(text: str) -> str:
    return " ".join(text.split())


def test_an_emptied_list_of_budgets_survives_server_side_apply(control_plane: Testbed, crd_server: Server) -> None:
    policy = base_of("balancingpolicy").object
    policy["spec"]["moves"] = {"budgets": []}

    with crd_server.existing(base_of("balancingpolicy").object):
        control_plane.apply(policy)
        budgets = control_plane.kubectl("get", "bpol", "streaming", "--output=jsonpath={.spec.moves.budgets}")

    assert budgets == "[]"


def test_an_emptied_switch_survives_server_side_apply(control_plane: Testbed, crd_server: Server) -> None:
    switch = {**base_of("gateswitch").object, "metadata": {"name": "emptied"}}
    emptied = {**switch, "spec": {"gating": True, "allNamespaces": False, "namespaces": []}}

    with crd_server.existing(switch):
        control_plane.apply(emptied)
        spec = json.loads(control_plane.kubectl("get", "gsw", "emptied", "--output=jsonpath={.spec}"))

    assert spec == {**emptied["spec"], "restingNamespaces": [], "schedulerNames": ["default-scheduler"]}
