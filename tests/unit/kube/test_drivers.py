"""Which pods are drivers, whatever their labels."""

from typing import Any

from ballast.kube.drivers import with_drivers
from ballast.kube.pods import Pod, PodReader
from tests.unit.kube.builders import driver, executor, pod

OWNER = [{"kind": "Pod", "name": "server", "uid": "uid-server", "controller": True}]


def seen(*pods: dict[str, Any]) -> dict[str, Pod]:
    reader = PodReader()
    return {each.name: each for each in with_drivers(reader.read(one) for one in pods)}


def test_the_pod_that_owns_executors_is_their_driver_whatever_its_labels() -> None:
    found = seen(pod("server", node="n"), executor(1, owners=OWNER), executor(2, application="spark-2", owners=OWNER))
    assert (found["server"].is_driver, found["server"].driven) == (True, ("spark-1", "spark-2"))
    assert not found["spark-1-exec-1"].is_driver


def test_a_driver_that_spark_labels_is_one_without_executors_too() -> None:
    found = seen(driver(), pod("server", labels={"spark-app-selector": "spark-9"}))
    assert (found["spark-1-driver"].is_driver, found["spark-1-driver"].driven) == (True, ("spark-1",))
    assert (found["server"].is_driver, found["server"].driven) == (False, ())


def test_a_pod_of_another_namespace_or_an_executor_is_no_driver() -> None:
    own = [{"kind": "Pod", "name": "spark-1-exec-2", "uid": "uid-spark-1-exec-2"}]
    found = seen(pod("server", namespace="other"), executor(1, owners=OWNER), executor(2), executor(3, owners=own))
    assert not any(each.is_driver for each in found.values())


def test_an_owner_without_executors_any_more_is_no_driver() -> None:
    (server,) = with_drivers([seen(pod("server"), executor(1, owners=OWNER))["server"]])
    assert not server.is_driver
