import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from tests.testbed.kubelet.client import Client, Credentials
from tests.testbed.kubelet.watch import Watcher

Json = dict[str, Any]


def item(uid: str, version: str = "1") -> Json:
    return {"metadata": {"uid": uid, "name": uid, "resourceVersion": version}}


def event(kind: str, thing: Json) -> Json:
    return {"type": kind, "object": thing}


EXPIRED = event("ERROR", {"code": 410, "message": "too old", "metadata": {}})


class Server:
    """Answers lists and watches from a script: each list in turn, each watch in turn, then silence."""

    def __init__(self) -> None:
        self.lists: list[list[Json]] = []
        self.watches: list[list[Json]] = []
        self.versions: list[str] = []
        self.exhausted = asyncio.Event()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            items = self.lists.pop(0) if len(self.lists) > 1 else self.lists[0]
            return web.json_response({"metadata": {"resourceVersion": "100"}, "items": items})
        self.versions.append(request.query["resourceVersion"])
        response = web.StreamResponse()
        await response.prepare(request)
        if not self.watches:
            self.exhausted.set()
            await asyncio.Event().wait()
        for line in self.watches.pop(0):
            await response.write(json.dumps(line).encode() + b"\n")
        return response


class Told:
    def __init__(self) -> None:
        self.words: list[str] = []

    def changed(self, thing: Json) -> None:
        self.words.append(f"+{thing['metadata']['uid']}@{thing['metadata']['resourceVersion']}")

    def removed(self, thing: Json) -> None:
        self.words.append(f"-{thing['metadata']['uid']}")


@pytest.fixture
async def server() -> AsyncIterator[tuple[Server, str]]:
    made = Server()
    application = web.Application()
    application.router.add_get("/things", made.answer)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield made, f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def told(server: Server, url: str) -> list[str]:
    client, receiver = Client(Credentials(url, None, None)), Told()
    watching = asyncio.create_task(Watcher(client, "/things", receiver).run())
    await asyncio.wait_for(server.exhausted.wait(), 10)
    watching.cancel()
    await client.aclose()
    return receiver.words


async def test_the_list_comes_first_then_the_changes(server: tuple[Server, str]) -> None:
    script, url = server
    script.lists = [[item("a")]]
    script.watches = [[event("ADDED", item("b", "101")), event("DELETED", item("a", "102"))]]
    assert await told(script, url) == ["+a@1", "+b@101", "-a"]


async def test_a_closed_stream_goes_on_from_the_last_version_seen_bookmarks_included(
    server: tuple[Server, str],
) -> None:
    script, url = server
    script.lists = [[]]
    script.watches = [[event("ADDED", item("a", "101")), event("BOOKMARK", item("", "150"))], []]
    await told(script, url)
    assert script.versions == ["100", "150", "150"]


async def test_after_an_expired_version_what_has_gone_meanwhile_is_told(server: tuple[Server, str]) -> None:
    script, url = server
    script.lists = [[item("a"), item("b")], [item("b", "2")]]
    script.watches = [[EXPIRED]]
    assert await told(script, url) == ["+a@1", "+b@1", "-a", "+b@2"]
