from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from ballast.api.meta import GROUP, VERSION
from ballast.controller.watching import News, watch
from ballast.kube.connection import Connection
from tests.unit.kube.builders import GATE, executor
from tests.unit.kube.scripted import Answer, Asked, Scripted, kubeconfig, scripted

JSON = dict[str, Any]


def policy(**metadata: Any) -> JSON:
    return {"metadata": {"uid": "uid-1", "generation": 1, **metadata}, "status": {}}


def test_a_new_object_is_news_once() -> None:
    news = News()
    assert news.of_spec(policy())
    assert not news.of_spec(policy())


def test_another_spec_is_news_and_a_status_is_none() -> None:
    news = News()
    news.of_spec(policy())
    assert not news.of_spec({**policy(), "status": {"nodes": {"total": 3}}})
    assert news.of_spec(policy(generation=2))


def test_an_object_that_goes_is_news() -> None:
    news = News()
    news.of_spec(policy())
    assert news.of_spec(policy(deletionTimestamp="2026-11-21T10:00:00Z"))


@pytest.mark.parametrize(
    "after",
    [
        executor(gates=[]),
        executor(gates=[GATE, {"name": "theirs"}]),
        executor(gates=[GATE], node="node-1"),
        executor(gates=[GATE], phase="Running"),
        executor(gates=[GATE], leaving=True),
    ],
)
def test_what_decisions_depend_on_is_news(after: JSON) -> None:
    news = News()
    assert news.of_pod(executor(gates=[GATE]))
    assert news.of_pod(after)


def test_what_nobody_decides_by_is_no_news() -> None:
    news = News()
    news.of_pod(executor(gates=[GATE]))
    assert not news.of_pod(executor(gates=[GATE], annotations={"seen": "yes"}))


def test_what_is_deleted_is_news_although_it_was_seen_leaving_and_is_forgotten() -> None:
    news = News()
    news.of_pod(executor(1, leaving=True))
    assert news.of_pod(executor(1, leaving=True), deleted=True)
    assert len(news) == 0
    news.of_spec(policy())
    assert news.of_spec(policy(), deleted=True)
    assert len(news) == 0


def resource(plural: str) -> JSON:
    verbs = ["get", "list", "watch", "patch"]
    return {"name": plural, "singularName": plural, "kind": plural, "namespaced": True, "verbs": verbs}


def group(name: str, version: str) -> JSON:
    return {"name": name, "versions": [{"version": version}], "preferredVersion": {"version": version}}


DISCOVERY: dict[str, JSON] = {
    "/version": {"major": "1"},
    "/api": {"versions": ["v1"]},
    "/apis": {"groups": [group("apiextensions.k8s.io", "v1"), group(GROUP, VERSION)]},
    "/api/v1": {"resources": [resource("pods"), resource("namespaces")]},
    "/apis/apiextensions.k8s.io/v1": {"resources": [resource("customresourcedefinitions")]},
    f"/apis/{GROUP}/{VERSION}": {
        "resources": [resource(plural) for plural in ("balancingpolicies", "sparktopologies", "executormoves")]
    },
}
NOTHING_NEW = Answer(body={"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "2"}}})
ARRIVAL = Answer(body={"type": "ADDED", "object": executor(gates=[GATE])})
REFUSED = Answer(401, {"message": "Unauthorized"})
BROKEN_STREAM = Answer(body={"type": "ERROR", "object": {"code": 500, "message": "etcdserver: leader changed"}})


class ApiServer:
    """As much of one as kopf watches; `pods`: how the watches of the executors are answered, the last one for ever."""

    def __init__(self, *pods: Answer) -> None:
        self._pods = list(pods)
        self.listening = 0
        """Watches of the executors that were asked for."""

    def __call__(self, asked: Asked) -> Answer:
        return replace(self._answer(asked), headers={"Content-Type": "application/json"})

    def _answer(self, asked: Asked) -> Answer:
        path = asked.path.partition("?")[0]
        if path in DISCOVERY:
            return Answer(body=DISCOVERY[path])
        if "watch=true" not in asked.path:
            return Answer(body={"kind": "List", "metadata": {"resourceVersion": "1"}, "items": []})
        if path != "/api/v1/pods":
            return NOTHING_NEW
        self.listening += 1
        return self._pods.pop(0) if len(self._pods) > 1 else self._pods[0]


@dataclass
class Ears:
    heard: asyncio.Event = field(default_factory=asyncio.Event)
    stop: asyncio.Event = field(default_factory=asyncio.Event)

    async def listen(self, script: Scripted, folder: Path) -> None:
        connection = Connection.from_kubeconfig(kubeconfig(folder, script.url))
        await asyncio.wait_for(watch(connection, self.heard.set, failed=lambda _: None, stop=self.stop), 60)


async def test_a_watch_that_breaks_after_it_has_begun_is_raised_so_that_the_process_starts_anew(tmp_path: Path) -> None:
    with scripted() as script:
        script.by = server = ApiServer(NOTHING_NEW, BROKEN_STREAM)
        with pytest.raises(Exception, match="leader changed"):
            await Ears().listen(script, tmp_path)
        assert server.listening == 2


async def test_an_executor_is_heard_of_although_the_server_refused_the_same_token_for_a_while(tmp_path: Path) -> None:
    ears = Ears()
    with scripted() as script:
        script.by = ApiServer(NOTHING_NEW, REFUSED, REFUSED, ARRIVAL)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(ears.listen(script, tmp_path))
            await ears.heard.wait()
            ears.stop.set()
