from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import kopf
import pytest

from ballast.controller import framework as framework_module
from ballast.controller.framework import _LISTED_AT_ONCE, Framework, Hooks
from ballast.kube.connection import Connection, Tls
from ballast.kube.document import JSON
from ballast.kube.kinds import Kind
from tests.apiserver import Answer, ApiServer, Asked, Fault, Watch, kubeconfig, scripted
from tests.testbed.pki import create_pki

JSON_TYPE = {"Content-Type": "application/json"}
ARRIVAL: JSON = {"metadata": {"name": "m", "namespace": "n", "uid": "u", "resourceVersion": "3"}}
REFUSED = Answer(401, {"message": "Unauthorized"})
BROKEN_STREAM = Answer(body={"type": "ERROR", "object": {"code": 500, "message": "etcdserver: leader changed"}})
GATEWAY_PAGE = Answer(text="<html>Sign in to continue</html>", headers=JSON_TYPE)


def of_moves(asked: Asked, *, watched: bool) -> bool:
    return asked.place.plural == "executormoves" and (asked.query.get("watch") == "true") == watched


@contextmanager
def watched(*faults: Answer, arrival: JSON = ARRIVAL) -> Iterator[ApiServer]:
    """A server that answers so to the first watches of ExecutorMoves; the one afterwards brings a move."""
    left = list(faults)
    with scripted() as server:

        def answer(asked: Asked) -> Answer | Watch:
            if of_moves(asked, watched=True) and not server.all("executormoves"):
                if left:
                    return left.pop(0)
                server.put("executormoves", arrival)
            return server.respond(asked)

        server.by = answer
        yield server


@dataclass
class Heard:
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    started: int = 0
    ended: int = 0
    names: list[str] = field(default_factory=list)
    objects: list[JSON] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    wanted: int = 1
    """Objects that must be heard of before it has arrived."""

    def framework(self, script: ApiServer, folder: Path) -> Framework:
        connection = Connection.from_kubeconfig(kubeconfig(folder, script.url))
        return Framework(connection, Hooks(self._hear, self._start, self._end), self.stop)

    def _hear(self, kind: Kind, raw: JSON, deleted: bool) -> None:
        assert not deleted
        self.names.append(f"{kind.plural}/{raw['metadata']['name']}")
        self.objects.append(raw)
        if len(set(self.names)) >= self.wanted:
            self.arrived.set()

    async def _start(self) -> None:
        self.started += 1

    async def _end(self) -> None:
        self.ended += 1


async def until_heard(script: ApiServer, folder: Path) -> tuple[Heard, Framework]:
    """Runs until a move was heard of, then stops."""
    heard = Heard()
    framework = heard.framework(script, folder)
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        tasks.create_task(framework.run())
        await heard.arrived.wait()
        heard.stop.set()
    return heard, framework


async def test_a_change_of_our_kinds_is_heard_and_the_process_winds_up_once_when_it_is_to_stop(tmp_path: Path) -> None:
    with watched() as script:
        heard, framework = await until_heard(script, tmp_path)
    assert heard.names[0] == "executormoves/m"
    assert (heard.started, heard.ended, framework.restarts) == (1, 1, 0)


async def test_of_an_object_that_was_heard_of_kopf_keeps_no_more_than_its_identity(tmp_path: Path) -> None:
    """Its views of an object are a cycle, which is found late: a long object that changes often filled the memory."""
    more = {"labels": {"a": "b"}, "annotations": {"c": "d"}}
    long = {**ARRIVAL, "metadata": {**ARRIVAL["metadata"], **more}, "spec": {"e": "f"}, "status": {"g": "h"}}
    bodies, begin = list[kopf.Body](), kopf.Body.__init__

    def noted(body: kopf.Body, source: Any) -> None:
        bodies.append(body)
        begin(body, source)

    with watched(arrival=long) as script, patch.object(kopf.Body, "__init__", noted):
        heard, _ = await until_heard(script, tmp_path)
    version = heard.objects[0]["metadata"]["resourceVersion"]
    # In a watch, unlike in a list, each object says its kind.
    kind = {"apiVersion": "ballast.dev/v1alpha1", "kind": "ExecutorMove"}
    whole = {**long, "metadata": {**long["metadata"], "resourceVersion": version}}
    assert {**kind, **heard.objects[0]} == {**kind, **whole}
    assert {**kind, **bodies[0]} == {**kind, "metadata": {**ARRIVAL["metadata"], "resourceVersion": version}}


@pytest.mark.parametrize("broken", [BROKEN_STREAM, GATEWAY_PAGE], ids=["an error in the stream", "a gateway's page"])
async def test_when_kopf_fails_it_is_started_again_inside_the_process(tmp_path: Path, broken: Answer) -> None:
    """A page of HTML with status 200 once ended the process, and gated executors waited for the CronJob."""
    with watched(broken) as script:
        heard, framework = await until_heard(script, tmp_path)
    assert "executormoves/m" in heard.names
    assert framework.restarts >= 1
    assert heard.started == framework.restarts + 1


async def test_a_kopf_that_hangs_while_it_ends_is_abandoned_and_started_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Under load, kopf was seen to wait for ever for a watch that it failed to cancel."""
    real, hung = kopf.run_tasks, list[asyncio.Task[Any]]()

    async def hang(tasks: Any, *, ignored: Any) -> None:
        if hung:
            await real(tasks, ignored=ignored)
            return
        hung.append(asyncio.create_task(_deaf()))
        with suppress(Exception):
            await real(tasks, ignored={*ignored, hung[0]})
        await hung[0]

    with watched(BROKEN_STREAM) as script, patch.object(kopf, "run_tasks", hang):
        heard, framework = await until_heard(script, tmp_path)
    assert "executormoves/m" in heard.names
    assert hung[0].done()
    assert framework.restarts >= 1
    assert "kopf does not end after one of its tasks has" in caplog.text
    # What the abandoned kopf left open is collected here, and not in whichever test comes next.
    hung.clear()
    gc.collect()


async def _deaf() -> None:
    """Does not end at its first cancellation."""
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        await asyncio.Event().wait()


async def test_a_token_that_the_server_refuses_for_a_while_does_not_end_the_watching(tmp_path: Path) -> None:
    with watched(REFUSED, REFUSED) as script:
        heard, _ = await until_heard(script, tmp_path)
    assert "executormoves/m" in heard.names


async def test_kopf_is_started_again_on_request_and_tasks_that_were_there_before_go_on(tmp_path: Path) -> None:
    heard, ticks = Heard(), asyncio.Event()

    async def work() -> None:
        await heard.stop.wait()
        ticks.set()

    with scripted() as script:
        framework = heard.framework(script, tmp_path)
        async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
            tasks.create_task(work())
            tasks.create_task(framework.run())
            while heard.started < 2:
                if heard.started:
                    framework.restart()
                await asyncio.sleep(0.01)
            heard.stop.set()
    assert ticks.is_set()
    assert framework.restarts == 1


async def test_kopf_is_started_again_when_the_authority_of_the_api_server_is_rotated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would go on not to trust the new one: what it trusts was read at its login."""
    monkeypatch.setattr("ballast.controller.framework._ROTATION_SECONDS", 0.05)
    pki = create_pki(tmp_path / "pki", control_hosts=["127.0.0.1"], node_hosts=["127.0.0.1"])
    authority = tmp_path / "ca.crt"
    authority.write_bytes(pki.cluster_ca.files.certificate.read_bytes())
    heard = Heard()
    with scripted() as script:
        framework = heard.framework(script, tmp_path)
        framework = replace(framework, connection=replace(framework.connection, tls=Tls(ca_path=str(authority))))
        async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
            tasks.create_task(framework.run())
            while heard.started < 2:
                if heard.started and script.asked:
                    authority.write_bytes(pki.etcd_ca.files.certificate.read_bytes())
                await asyncio.sleep(0.05)
            heard.stop.set()
    assert framework.restarts == 1


async def test_a_process_that_is_to_end_before_kopf_has_begun_does_not_start_it(tmp_path: Path) -> None:
    heard = Heard()
    with scripted() as script:
        framework = heard.framework(script, tmp_path)
        heard.stop.set()
        await framework.run()
    assert (heard.started, framework.restarts, script.asked) == (0, 0, [])


async def test_a_watch_that_freezes_is_opened_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing comes on a connection that stays open, as behind a firewall that forgot it."""
    monkeypatch.setattr(framework_module, "_INACTIVITY_SECONDS", 0.5)
    frozen: list[Watch] = []
    with scripted() as server:

        def answer(asked: Asked) -> Answer | Watch:
            found = server.respond(asked)
            if of_moves(asked, watched=True) and not frozen and isinstance(found, Watch):
                frozen.append(found)
                found.strike(Fault.SILENT)
                server.put("executormoves", ARRIVAL)
            return found

        server.by = answer
        heard, framework = await until_heard(server, tmp_path)
    assert len(frozen) == 1
    assert (heard.names, framework.restarts) == (["executormoves/m"], 0)


async def test_a_list_whose_later_page_is_too_old_is_begun_again(tmp_path: Path) -> None:
    """The API server compacts its history every five minutes, and a slow list outlasts that (410 Gone)."""
    expired: list[Asked] = []
    with scripted() as server:
        for number in range(_LISTED_AT_ONCE + 1):
            server.put(
                "executormoves", {"metadata": {**ARRIVAL["metadata"], "name": f"m{number}", "uid": f"u{number}"}}
            )

        def answer(asked: Asked) -> Answer | Watch:
            if of_moves(asked, watched=False) and "continue" in asked.query and not expired:
                expired.append(asked)
                return Answer(410, {"reason": "Expired", "message": "The provided continue parameter is too old."})
            return server.respond(asked)

        server.by = answer
        heard = Heard(wanted=_LISTED_AT_ONCE + 1)
        framework = heard.framework(server, tmp_path)
        async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
            tasks.create_task(framework.run())
            await heard.arrived.wait()
            heard.stop.set()
    assert len(expired) == 1
    assert set(heard.names) == {f"executormoves/m{number}" for number in range(_LISTED_AT_ONCE + 1)}
