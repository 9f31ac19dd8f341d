"""The operator as a whole, where the API server is slow or of no help."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import pytest

from ballast.controller.gate_timeout import Overdue
from ballast.controller.operator import _COMPARE_EVERY_SECONDS, Operator, Settings
from ballast.kube.connection import Connection
from ballast.kube.document import text
from ballast.kube.errors import KubeError, Unavailable
from ballast.model import Reason
from tests.apiserver import Answer, ApiServer, Asked, Watch, kubeconfig, scripted, serving
from tests.unit.kube.builders import GATE, JSON, executor, node, pod


class Mute:
    """A server that takes connections and never answers."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._taken: list[socket.socket] = []
        self.asked = threading.Semaphore(0)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._taking = threading.Thread(target=self._take, daemon=True)
        self._taking.start()

    def _take(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._taken.append(connection)
            self.asked.release()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._taking.join()
        self._listener.close()
        for connection in self._taken:
            connection.close()


@contextmanager
def mute() -> Iterator[Mute]:
    server = Mute()
    try:
        yield server
    finally:
        server.close()


@pytest.fixture(autouse=True)
def _nobody_left_behind() -> Iterator[None]:
    """What the operator leaves behind ends once its server is gone; it must not disturb the next test."""
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(30)
        assert not thread.is_alive(), thread


async def test_a_stop_does_not_wait_for_a_server_that_hangs(tmp_path: Path) -> None:
    with mute() as server:
        settings = Settings(
            "ballast", "ballast-system", "one", host="127.0.0.1", health_port=0, metrics_port=0, stop_seconds=0.2
        )
        operator = Operator(Connection.from_kubeconfig(kubeconfig(tmp_path, server.url)), settings)
        stop = asyncio.Event()
        running = asyncio.ensure_future(operator.run(stop))
        for _ in range(4):
            await asyncio.to_thread(server.asked.acquire, timeout=30)
        stop.set()
        await asyncio.wait_for(running, 15)


class Slow:
    """All is empty. Lists of moves come when they are let go, except for kopf."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self.round_began, self.let_go, self.renewed = threading.Event(), threading.Event(), threading.Semaphore(0)

    def __call__(self, asked: Asked) -> Answer | Watch:
        if asked.route.endswith("/executormoves") and not asked.headers["User-Agent"].startswith("kopf"):
            self.round_began.set()
            self.let_go.wait(60)
        if asked.method == "PUT":
            self.renewed.release()
        return self.server.respond(asked)


async def test_a_clean_stop_turns_the_switch_off_although_the_last_round_takes_longer_than_a_lease(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with scripted() as script:
        script.by = server = Slow(script)
        settings = Settings(
            "ballast",
            "ballast-system",
            "one",
            host="127.0.0.1",
            health_port=0,
            metrics_port=0,
            lease_seconds=3,
            stop_seconds=60,
        )
        operator = Operator(Connection.from_kubeconfig(kubeconfig(tmp_path, script.url)), settings)
        stop = asyncio.Event()
        running = asyncio.ensure_future(operator.run(stop))
        assert await asyncio.to_thread(server.round_began.wait, 30)
        stop.set()
        renewals_of_a_lease = 6
        for _ in range(2 * renewals_of_a_lease):
            assert await asyncio.to_thread(server.renewed.acquire, timeout=30)
        server.let_go.set()
        await asyncio.wait_for(running, 30)
        assert script.status("gateswitches", "ballast")["reason"] == "Stopped"
        assert script.one("leases", "ballast", "ballast-system")["spec"]["holderIdentity"] == ""
    led = [vars(each) for each in caplog.records if vars(each).get("event") == "LeadershipChanged"]
    assert [(each["identity"], each["leading"]) for each in led][:1] == [("one", True)]


async def test_a_process_that_fails_releases_what_it_gates_and_says_why(tmp_path: Path) -> None:
    with scripted() as script:
        gated = executor(1, gates=[GATE])
        gated["metadata"]["creationTimestamp"] = text(time.time())
        script.put("pods", gated)
        script.put("nodes", node())
        script.put("namespaces", {"metadata": {"name": "analytics", "labels": {"ballast.dev/gate": "enabled"}}})
        settings = Settings("ballast", "ballast-system", "one", host="127.0.0.1", health_port=0, metrics_port=0)
        operator = Operator(Connection.from_kubeconfig(kubeconfig(tmp_path, script.url)), settings)
        with (
            patch.object(operator, "_elect", side_effect=RuntimeError("a defect")),
            pytest.raises(ExceptionGroup, match="unhandled errors"),
        ):
            await asyncio.wait_for(operator.run(asyncio.Event()), 30)
        released = [asked.path for asked in script.writes if "/pods/" in asked.path]
    assert released == ["/api/v1/namespaces/analytics/pods/spark-1-exec-1?fieldManager=ballast"]


@contextmanager
def built(folder: Path, url: str = "http://127.0.0.1:1") -> Iterator[Operator]:
    """Not run: for its single tasks. `url`: of its API server."""
    settings = Settings("ballast", "ballast-system", "one", host="127.0.0.1", health_port=0, metrics_port=0)
    operator = Operator(Connection.from_kubeconfig(kubeconfig(folder, url)), settings)
    try:
        yield operator
    finally:
        for each in (operator._reconciler, operator._metrics):
            each.close()


AWAY = Unavailable("get leases", "away")


@dataclass
class Ballot:
    """Stands in for an election: at each tick, whether this replica leads then, and why that is not known."""

    ticks: list[tuple[bool, KubeError | None]]
    leading: bool = False
    last_error: KubeError | None = None

    def tick(self) -> bool:
        self.leading, self.last_error = self.ticks.pop(0)
        return self.leading


async def elected(operator: Operator, *ticks: tuple[bool, KubeError | None]) -> list[tuple[bool, str]]:
    """Whether the replica was ready, and why not, after each of its election's ticks."""
    stop, ended, found = asyncio.Event(), asyncio.Event(), list[tuple[bool, str]]()
    ballot = Ballot(list(ticks))

    async def note(_: asyncio.Event, seconds: float) -> None:
        del seconds
        found.append((operator._pulse.ready, operator._pulse.failing))
        if not ballot.ticks:
            ended.set()

    with (
        patch.object(operator, "_election", ballot),
        patch("ballast.controller.operator.pause", note),
    ):
        await operator._elect(stop, ended)
    return found


class Noted:
    """Stands in for what tells of the end of the operator's work."""

    def __init__(self) -> None:
        self.callbacks: list[Callable[[object], None]] = []

    def add_done_callback(self, callback: Callable[[object], None]) -> None:
        self.callbacks.append(callback)

    def result(self) -> None:
        return None


def test_an_end_that_comes_after_that_of_kopfs_loop_is_no_error(tmp_path: Path) -> None:
    async def at_once(*_: object) -> None:
        """Kopf stops, and so does the loop."""

    ended = Noted()
    with (
        built(tmp_path) as operator,
        patch.object(operator, "_work", SimpleNamespace(ended=ended)),
        patch.object(operator, "_end", at_once),
        patch("ballast.controller.operator.Framework", lambda *_: SimpleNamespace(run=at_once)),
    ):
        asyncio.run(operator.run(asyncio.Event()))
    assert ended.callbacks
    for callback in ended.callbacks:
        callback(None)


async def test_the_work_is_told_to_end_while_kopf_still_closes_its_watches(tmp_path: Path) -> None:
    told, stop = asyncio.Event(), asyncio.Event()

    async def run() -> None:
        stop.set()
        await told.wait()

    async def ended(_: object) -> None:
        """The work is over."""

    with (
        built(tmp_path) as operator,
        patch.object(operator, "_work", SimpleNamespace(ended=Noted(), stop=told.set)),
        patch.object(operator, "_end", ended),
        patch("ballast.controller.operator.Framework", lambda *_: SimpleNamespace(run=run)),
    ):
        await operator.run(stop)


async def test_a_standby_is_ready_unless_it_cannot_reach_the_lease(tmp_path: Path) -> None:
    with built(tmp_path) as operator:
        found = await elected(operator, (False, None), (False, AWAY), (False, None))
    assert found == [(True, ""), (False, "get leases: no answer"), (True, "")]


async def test_a_leader_that_cannot_reach_the_lease_for_a_moment_is_not_failing(tmp_path: Path) -> None:
    with built(tmp_path) as operator:
        assert [failing for _, failing in await elected(operator, (True, None), (True, AWAY))] == ["", ""]


async def test_a_replica_that_gains_or_loses_the_lease_says_so_and_has_a_round_at_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with built(tmp_path) as operator:
        await elected(operator, (True, None))
        assert operator._agenda.take()
        await elected(operator, (True, None), (False, None))
        assert operator._agenda.take()
        leading = operator._telemetry.registry.get_sample_value("ballast_leading")
    led = [vars(each)["leading"] for each in caplog.records if vars(each).get("event") == "LeadershipChanged"]
    assert (led, leading) == ([True, True, False], 0.0)


async def test_a_replica_that_goes_on_leading_says_so_once_and_forgets_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with built(tmp_path) as operator, patch.object(operator._reconciler, "forget") as forget:
        await elected(operator, *[(True, None)] * 3)
    assert forget.call_count == 1
    assert len([each for each in caplog.records if vars(each).get("event") == "LeadershipChanged"]) == 1


async def test_executors_that_only_the_gate_timeout_released_are_told_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    reasons = {"streaming": {"u1": Reason.GATE_TIMEOUT, "u2": Reason.GATE_TIMEOUT, "u3": Reason.NO_ROOM}}
    late = Overdue(2, 1, 1, reasons, holds=(("streaming", 12.0), ("", 14.0)), longest_gated_seconds=16.0)
    stop, outcomes = asyncio.Event(), [Overdue(), late]

    def run() -> Overdue:
        if len(outcomes) == 1:
            stop.set()
        return outcomes.pop(0)

    with (
        built(tmp_path) as operator,
        patch.object(operator, "_gates", SimpleNamespace(run=run)),
        patch("ballast.controller.operator._GATES_EVERY_SECONDS", 0.0),
    ):
        await operator._watch_gates(stop)
        assert operator._released.reasons == late.by_policy["streaming"]
        registry = operator._telemetry.registry
        counted = {
            cause: registry.get_sample_value("ballast_unplaced_sets_total", {"policy": "streaming", "cause": cause})
            for cause in ("GateTimeout", "NoRoom")
        }
        held = [
            registry.get_sample_value("ballast_gate_hold_seconds_sum", {"policy": policy})
            for policy in ("streaming", "")
        ]
        assert held == [12.0, 14.0]
        assert registry.get_sample_value("ballast_gated_too_long_timestamp_seconds")
    assert [record.message for record in caplog.records] == [
        "gate timeout: 2 executors released with a zone, 1 without a place, 1 still gated"
    ]
    assert counted == {"GateTimeout": 1.0, "NoRoom": 1.0}


@pytest.mark.parametrize(
    ("error", "words"),
    [(AWAY, "overdue gates were not looked for: get leases: away"), (KeyError("x"), "overdue gates were not released")],
)
async def test_a_look_for_overdue_gates_that_fails_is_told_and_made_again(
    error: Exception, words: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stop, failures = asyncio.Event(), [error]

    def run() -> Overdue:
        if failures:
            raise failures.pop()
        stop.set()
        return Overdue()

    with (
        built(tmp_path) as operator,
        patch.object(operator, "_gates", SimpleNamespace(run=run)),
        patch("ballast.controller.operator._GATES_EVERY_SECONDS", 0.0),
    ):
        await operator._watch_gates(stop)
    assert [record.message for record in caplog.records] == [words]


@dataclass
class Kinds:
    """Stands in for the cluster's state: what its lists show to be missing, one list after the other."""

    lists: list[Mapping[str, int] | Exception]
    stop: asyncio.Event
    loop: asyncio.AbstractEventLoop
    still_unheard: bool = True
    has_policies: bool = False
    restorations: list[bool] = field(default_factory=list)
    turns: int = 0
    listed_at: list[int] = field(default_factory=list)

    def restored(self) -> bool:
        return bool(self.restorations) and self.restorations.pop(0)

    def verify(self) -> Mapping[str, int]:
        self.listed_at.append(self.turns)
        found = self.lists.pop(0)
        if not self.lists:
            self.loop.call_soon_threadsafe(self.stop.set)
        if isinstance(found, Exception):
            raise found
        return found

    def unheard(self, missed: Mapping[str, int]) -> bool:
        assert missed == MISSED
        return self.still_unheard


MISSED = {"uid-clicks": 7}


async def compared(operator: Operator, kinds: Kinds, *, leads: bool = False) -> int:
    """How often kopf was started again."""
    restarts = list[bool]()

    async def turn(_: asyncio.Event, seconds: float) -> None:
        kinds.turns += seconds == _COMPARE_EVERY_SECONDS
        await asyncio.sleep(0)

    with (
        patch.object(operator, "_state", kinds),
        patch.object(operator, "_election", SimpleNamespace(leading=leads)),
        patch.object(operator, "_framework", SimpleNamespace(restart=lambda: restarts.append(True))),
        patch("ballast.controller.operator.pause", turn),
    ):
        await asyncio.wait_for(operator._compare(kinds.stop), 30)
    return len(restarts)


@pytest.mark.parametrize(
    ("lists", "still_unheard", "restarts"),
    [
        pytest.param([{}], True, 0, id="nothing is missing"),
        pytest.param([MISSED], True, 1, id="a change that kopf has missed"),
        pytest.param([MISSED], False, 0, id="a change whose event was only late"),
        pytest.param([AWAY, MISSED], True, 1, id="after a list that failed"),
        pytest.param([KeyError("x"), MISSED], True, 1, id="after a defect"),
    ],
)
async def test_kopf_is_started_again_when_it_has_missed_a_change(
    lists: list[Mapping[str, int] | Exception], tmp_path: Path, *, still_unheard: bool, restarts: int
) -> None:
    kinds = Kinds(list(lists), asyncio.Event(), asyncio.get_running_loop(), still_unheard)
    with built(tmp_path) as operator:
        assert await compared(operator, kinds) == restarts
        assert operator._agenda.take() is (MISSED in lists), "what was missing is acted on at once"


async def test_kopf_is_started_again_at_once_when_etcd_was_restored_from_a_backup(tmp_path: Path) -> None:
    """Its watches wait for versions that are still to come, and what it has told of has such versions."""
    loop = asyncio.get_running_loop()
    kinds = Kinds([{}], asyncio.Event(), loop, has_policies=True, restorations=[False, True, False])
    with built(tmp_path) as operator:
        assert await compared(operator, kinds, leads=True) == 1
        assert operator._agenda.take()
    assert kinds.listed_at == [12]


@pytest.mark.parametrize(
    ("has_policies", "leads", "listed_at"),
    [
        pytest.param(False, False, [1, 2], id="without a policy: definitions may be applied again"),
        pytest.param(True, True, [12, 24], id="a leader"),
        pytest.param(True, False, [60, 120], id="a standby"),
    ],
)
async def test_our_kinds_are_listed_as_often_as_decisions_depend_on_them(
    tmp_path: Path, *, has_policies: bool, leads: bool, listed_at: list[int]
) -> None:
    kinds = Kinds([{}, {}], asyncio.Event(), asyncio.get_running_loop(), has_policies=has_policies)
    with built(tmp_path) as operator:
        await compared(operator, kinds, leads=leads)
    assert kinds.listed_at == listed_at


@pytest.mark.parametrize("end", ["it stops", "its namespace is being deleted", "it fails"])
async def test_executors_are_deleted_only_when_a_second_try_to_release_them_all_is_refused(
    tmp_path: Path, end: str
) -> None:
    """At its end a replica releases executors of any age, and a refusal may be one of a moment."""
    tries: list[bool] = []

    def release_all(*, replace: bool) -> Overdue:
        tries.append(replace)
        return Overdue()

    alone = SimpleNamespace(alone=True)
    with (
        built(tmp_path) as operator,
        patch.object(operator, "_gates", SimpleNamespace(release_all=release_all)),
        patch.object(operator, "_parting_switch", SimpleNamespace(off=lambda _: None)),
        patch.object(operator, "_others", alone),
        patch.object(operator, "_state", SimpleNamespace(leaving=lambda _: True)),
        patch("ballast.controller.operator._NOTICED_SECONDS", 0.0),
    ):
        if end == "it stops":
            operator._end_gating()
        elif end == "it fails":
            await operator._give_up_gates()
        else:
            for _ in range(2):
                operator._release_gated()
    assert tries == ([False] if end == "it fails" else [False, True])


LABELS = {"app.kubernetes.io/name": "ballast", "app.kubernetes.io/component": "operator"}


def own_pod(name: str, *, ready: bool = True, leaving: bool = False, release: str = "ballast") -> JSON:
    status = {"conditions": [{"type": "Ready", "status": str(ready)}]}
    return pod(
        name,
        namespace="ballast-system",
        labels={**LABELS, "app.kubernetes.io/instance": release},
        status=status,
        leaving=leaving,
    )


@pytest.mark.parametrize(
    ("others", "released"),
    [
        ([own_pod("two")], False),
        ([], True),
        ([own_pod("two", ready=False)], True),
        ([own_pod("two", leaving=True)], True),
        ([own_pod("two", release="other")], True),
    ],
    ids=["a ready one", "none", "one that is not ready", "one that stops as well", "one of another release"],
)
def test_a_leader_that_stops_releases_executors_unless_another_replica_can_place_them(
    tmp_path: Path, others: list[JSON], *, released: bool
) -> None:
    """In a rolling update the next leader places what the last one has gated."""
    server, tries = ApiServer(), list[bool]()
    server.put("pods", own_pod("one", leaving=True), *others)

    def release_all(*, replace: bool) -> Overdue:
        tries.append(replace)
        return Overdue()

    with (
        serving(server) as script,
        built(tmp_path, script.url) as operator,
        patch.object(operator, "_gates", SimpleNamespace(release_all=release_all)),
        patch.object(operator, "_parting_switch", SimpleNamespace(off=lambda _: None)),
        patch("ballast.controller.operator._NOTICED_SECONDS", 0.0),
    ):
        operator._end_gating()
        # Otherwise the server's end waits for the connection that it keeps.
        operator._client.close()
    assert bool(tries) is released
