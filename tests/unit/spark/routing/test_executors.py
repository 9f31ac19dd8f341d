from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkAttributeError

from ballast.spark.routing.executors import Counted, Executors, executors_of, warn_of_ui
from tests.loopback import Handler, Server

VARIABLE = "BALLAST_ZONE"
DRIVER: dict[str, Any] = {"id": "driver", "isActive": True, "totalCores": 0, "attributes": {}}


def an_executor(zone: str | None, *, cores: int = 4, active: bool = True) -> dict[str, Any]:
    """As the REST API of Spark 4.3 lists it."""
    attributes = {"BALLAST_ZONE": zone} if zone else {}
    return {"id": "1", "isActive": active, "totalCores": cores, "attributes": attributes}


@pytest.fixture(autouse=True)
def no_warning_yet() -> None:
    warn_of_ui.cache_clear()


@contextmanager
def listing(executors: Sequence[dict[str, Any]], *, status: int = 200) -> Iterator[Executors]:
    class Ui(Handler):
        def answer(self) -> None:
            if self.path == "/api/v1/applications/app-1/executors":
                self.reply(json.dumps(executors).encode(), status=status)

    with Server(Ui) as server:
        yield Executors(server.url, "app-1", VARIABLE)


def test_a_zone_has_the_cores_of_its_active_executors() -> None:
    executors = [an_executor("a"), an_executor("a", cores=2), an_executor("b"), an_executor("b", active=False)]
    with listing([DRIVER, *executors]) as senders:
        assert senders.read() == {"a": 6, "b": 4}


def test_executors_without_the_variable_are_counted_without_a_zone() -> None:
    with listing([an_executor("a"), an_executor(None)]) as senders:
        assert senders.read() == {"a": 4, "": 4}


def test_a_driver_that_runs_tasks_itself_is_the_only_sender(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "b")
    with listing([DRIVER]) as senders:
        assert senders.read() == {"b": 1.0}


@pytest.mark.parametrize(
    ("executors", "status", "why"),
    [
        ([an_executor(None)], 200, "no executor has the variable SPARK_EXECUTOR_ATTRIBUTE_BALLAST_ZONE"),
        ([an_executor("a")], 403, "it answers 403"),
        ([{"id": "1"}], 200, "KeyError('isActive')"),
    ],
)
def test_what_can_t_be_told_is_warned_of_once_by_its_cause(
    caplog: pytest.LogCaptureFixture, executors: list[dict[str, Any]], status: int, why: str
) -> None:
    with listing(executors, status=status) as senders:
        assert [senders.read() for _ in range(3)] == [{}, {}, {}]
    what = "does not tell where executors are, so records go to near and far partitions alike"
    assert caplog.messages == [f"routing: Spark's UI at {senders.url} {what}: {why}"]


def test_a_ui_that_does_not_answer_tells_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with listing([an_executor("a")]) as senders:
        pass
    assert [senders.read() for _ in range(3)] == [{}, {}, {}]
    (told,) = caplog.messages
    assert "refused" in told


def test_a_session_is_asked_for_its_ui_once() -> None:
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(uiWebUrl="http://driver:4040", applicationId="app-1"))
    assert executors_of(spark, VARIABLE) == Executors("http://driver:4040", "app-1", VARIABLE)


class OfConnect:
    @property
    def sparkContext(self) -> Any:  # noqa: N802 -- Spark's name
        raise PySparkAttributeError("JVM_ATTRIBUTE_NOT_SUPPORTED")


@pytest.mark.parametrize(
    "spark", [OfConnect(), SimpleNamespace(sparkContext=SimpleNamespace(uiWebUrl=None, applicationId="app-1"))]
)
def test_a_session_without_a_ui_is_warned_of_with_the_remedy(spark: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert executors_of(spark, VARIABLE) == Counted(())
    assert "give with_partition the executors of each zone as `senders`" in caplog.text
