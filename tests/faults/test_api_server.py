"""The API server is restarted, forgets its past, and loses the definitions of our kinds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from ballast.api.crd import KINDS
from ballast.kube.kinds import BALANCING_POLICY, POD
from tests.cluster.chart.installation import NAMESPACE, RELEASE, Installation
from tests.faults.behind import Scene, behind_a_gateway
from tests.faults.etcd import compact, restored_from_a_backup
from tests.faults.gateway import Fault
from tests.faults.invariants import GATED_SECONDS, RECOVERY_SECONDS, await_said
from tests.faults.older_version import KEPT
from tests.faults.play import Play
from tests.testbed.waiting import stays, wait_until

pytestmark = pytest.mark.cluster

JSON = dict[str, Any]
DEFINITIONS = sorted((Path(__file__).parents[2] / "crds").glob("*.yaml"))
LOST_WRITES = 200
"""More than are made in the test afterwards, so that versions from before do not come again in time."""
MOST_WRITES = 12
"""Of status in CALM_SECONDS, while nothing happens."""
CALM_SECONDS = 4.0


@pytest.fixture(scope="module")
def scene(installed: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with behind_a_gateway(installed, tmp_path_factory.mktemp("api-server"), "server") as found:
        yield found


@pytest.fixture
def play(scene: Scene) -> Iterator[Play]:
    with scene.stage.play() as found:
        yield found


def test_a_restart_of_the_api_server_in_the_middle_of_everything_changes_no_end(scene: Scene, play: Play) -> None:
    with scene.watched() as witness:
        play.begin()
        with witness.outage(), scene.testbed.without("kube-apiserver"):
            pass
        assert play.ends(outage_seconds=witness.outage_seconds) == play.aim()
    assert len(witness.evicted()) == 1


@pytest.mark.soak
def test_versions_that_etcd_has_compacted_are_listed_again(scene: Scene, play: Play) -> None:
    """The operator is cut off while its versions are forgotten; an API server that was started since has no others."""
    with scene.watched() as witness:
        with scene.gateway.failing(Fault.DROPPED), witness.outage():
            play.begin()
            compact(scene.testbed)
            with scene.testbed.without("kube-apiserver"):
                pass
        assert play.ends(outage_seconds=witness.outage_seconds) == play.aim()
    assert len(witness.evicted()) == 1
    assert "expired (410)" in scene.operator.log.read_text()


@pytest.mark.soak
def test_after_etcd_was_restored_from_a_backup_executors_are_placed_and_policies_are_heard_of(
    scene: Scene, tmp_path: Path
) -> None:
    """Watches from versions that are still to come are silent: executors stayed gated until as much had been written
    again, or for half an hour.
    """
    placing = scene.stage.placing
    with restored_from_a_backup(scene.testbed, tmp_path / "backup"):
        for number in range(LOST_WRITES):
            placing.executor(number, application="lost", gates=())
            placing.delete(POD, f"lost-exec-{number}")
        placing.await_released(placing.executors(2, application="lost-gated"), seconds=GATED_SECONDS)
    for application in ("first", "second"):
        gated = placing.executors(2, application=application)
        placing.await_released(gated, seconds=GATED_SECONDS)
        for name in gated:
            placing.delete(POD, name)
    log = scene.operator.log
    wait_until(lambda: "kopf is started again" in log.read_text(), what="it says so", timeout_seconds=RECOVERY_SECONDS)
    for interval in ("2s", "1s"):
        change = f'{{"spec":{{"interval":"{interval}"}}}}'
        scene.testbed.kubectl("patch", "balancingpolicy", placing.name, "--type=merge", f"--patch={change}")
        generation = placing.read(BALANCING_POLICY, placing.name)["metadata"]["generation"]
        wait_until(
            partial(_has_observed, scene, generation),
            what="the change of the policy is acted on",
            timeout_seconds=RECOVERY_SECONDS,
        )


def _has_observed(scene: Scene, generation: int) -> bool:
    """Whether the policy's condition is about this generation."""
    return (scene.stage.placing.condition(BALANCING_POLICY, "Ready") or {}).get("observedGeneration") == generation


@contextmanager
def older_definitions(scene: Scene) -> Iterator[None]:
    """Those of a version whose status had few fields: the API server drops the others."""
    scene.testbed.apply(*(_without_new_status(yaml.safe_load(path.read_text())) for path in DEFINITIONS))
    try:
        yield
    finally:
        scene.testbed.apply(*DEFINITIONS)


def _without_new_status(definition: JSON) -> JSON:
    for version in definition["spec"]["versions"]:
        status = version["schema"]["openAPIV3Schema"]["properties"].get("status")
        if status is not None:
            kept = {name: field for name, field in status["properties"].items() if name in KEPT}
            status["properties"] = kept
            status.pop("x-kubernetes-validations", None)
            status["required"] = [name for name in status.get("required", ()) if name in kept]
    return definition


@pytest.mark.soak
def test_definitions_of_an_older_version_keep_no_executor_gated_and_bring_no_endless_writes(scene: Scene) -> None:
    with scene.watched(), older_definitions(scene), scene.stage.play() as play:
        play.begin()
        assert play.ends() == play.aim()
        before = _status_writes(scene)
        stays(lambda: _status_writes(scene) - before < MOST_WRITES, what="it writes little", seconds=CALM_SECONDS)


def _status_writes(scene: Scene) -> int:
    asked = scene.testbed.requests_of(NAMESPACE, RELEASE)
    return sum(each.resource.endswith("/status") and each.verb == "patch" for each in asked)


@pytest.mark.soak
def test_definitions_that_are_deleted_and_applied_again_keep_no_executor_gated_and_new_objects_are_found(
    scene: Scene,
) -> None:
    stage = scene.stage
    with scene.watched() as witness:
        gated = stage.placing.executors(2, application="forgotten")
        scene.testbed.kubectl("delete", "crd", *(kind.crd_name for kind in KINDS))
        stage.placing.await_released(gated, seconds=GATED_SECONDS)
        scene.installed.upgrade()
        scene.installed.await_definitions()
        stage.policies()
        for mine in (stage.moving, stage.placing):
            await_said(mine, "Ready", "True", "Reconciled")
        for name in gated:
            stage.placing.delete(POD, name)
        with stage.play() as play:
            play.begin()
            assert play.ends() == play.aim()
    assert len(witness.evicted()) == 1
