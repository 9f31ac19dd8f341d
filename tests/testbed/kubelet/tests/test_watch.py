"""A watcher of the kubelet against the fake API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.apiserver import ApiServer, Fault, serving
from tests.testbed.kubelet.client import Client, Credentials
from tests.testbed.kubelet.watch import Watcher

Json = dict[str, Any]
PATH = "/api/v1/pods"


def thing(name: str) -> Json:
    return {"metadata": {"namespace": "work", "name": name, "uid": name}}


class Told:
    def __init__(self) -> None:
        self.words: list[str] = []
        self.more = asyncio.Event()

    def changed(self, item: Json) -> None:
        self._note(f"+{item['metadata']['uid']}@{item['metadata']['resourceVersion']}")

    def removed(self, item: Json) -> None:
        self._note(f"-{item['metadata']['uid']}")

    def _note(self, words: str) -> None:
        self.words.append(words)
        self.more.set()

    async def until(self, *words: str) -> None:
        async with asyncio.timeout(60):
            while len(self.words) < len(words):
                self.more.clear()
                await self.more.wait()
        assert self.words == [*words]


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with serving(ApiServer()) as made:
        made.put("pods", thing("a"), thing("b"))
        yield made


@pytest.fixture
async def told(server: ApiServer) -> AsyncIterator[Told]:
    client, receiver = Client(Credentials(server.url, None, None)), Told()
    watching = asyncio.create_task(Watcher(client, PATH, receiver).run())
    yield receiver
    watching.cancel()
    await client.aclose()


async def opened(server: ApiServer, number: int = 1) -> str:
    """The version from which the watch starts."""
    return (await asyncio.to_thread(server.next_watch, number)).parameters["resourceVersion"]


async def test_the_list_comes_first_then_the_changes(server: ApiServer, told: Told) -> None:
    await opened(server)
    server.put("pods", thing("c"))
    server.remove("pods", "a", "work")
    await told.until("+a@101", "+b@102", "+c@103", "-a")


async def test_a_closed_stream_goes_on_from_the_last_version_seen_bookmarks_included(
    server: ApiServer, told: Told
) -> None:
    versions = [await opened(server)]
    server.watches[0].send_raw(b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"150"}}}\n')
    for number in (2, 3):
        server.watches[-1].end()
        versions.append(await opened(server, number))
    assert versions == ["102", "150", "150"]
    assert told.words == ["+a@101", "+b@102"]


async def test_after_an_expired_version_what_has_gone_meanwhile_is_told(server: ApiServer, told: Told) -> None:
    await opened(server)
    with server.news:
        server.strike(Fault.EXPIRED)
        server.remove("pods", "a", "work")
        server.put("pods", thing("b"))
    await told.until("+a@101", "+b@102", "-a", "+b@104")
