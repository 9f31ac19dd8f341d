"""List, then watch, for ever: tells a receiver the state of a collection of API objects, level-based."""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

import aiohttp

from tests.testbed.kubelet.client import ApiError, Client, Json

log = logging.getLogger(__name__)


class Receiver(Protocol):
    """What a watcher tells. Each object comes at least once, later states replace earlier ones."""

    def changed(self, item: Json) -> None: ...

    def removed(self, item: Json) -> None: ...


class Watcher:
    """Follows one collection through expired versions, closed streams and restarts of the API server."""

    def __init__(self, client: Client, path: str, receiver: Receiver, *, query: str = "") -> None:
        self._client = client
        self._path = path
        self._query = query
        self._receiver = receiver
        self._known: dict[str, Json] = {}
        self.listed = asyncio.Event()

    async def run(self) -> None:
        delay = 0.1
        while True:
            try:
                version = await self._list()
                delay = 0.1
                await self._follow(version)
            except (ApiError, aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
                log.debug("watching %s?%s: %s", self._path, self._query, error)
                await asyncio.sleep(delay)
                delay = min(delay * 2, 2.0)

    async def _list(self) -> str:
        answer = await self._client.get(f"{self._path}?{self._query}" if self._query else self._path)
        items = {item["metadata"]["uid"]: item for item in answer["items"]}
        for uid in self._known.keys() - items.keys():
            self._receiver.removed(self._known.pop(uid))
        for uid, item in items.items():
            self._known[uid] = item
            self._receiver.changed(item)
        self.listed.set()
        return str(answer["metadata"]["resourceVersion"])

    async def _follow(self, version: str) -> None:
        while True:
            async for event in self._client.watch(self._path, query=self._query, version=version):
                item = event["object"]
                if event["type"] == "ERROR":
                    raise ApiError(int(item.get("code", 500)), str(item.get("message")))
                version = item["metadata"]["resourceVersion"]
                if event["type"] != "BOOKMARK":
                    self._tell(event["type"], item)

    def _tell(self, kind: str, item: Json) -> None:
        uid = item["metadata"]["uid"]
        if kind == "DELETED":
            self._known.pop(uid, None)
            self._receiver.removed(item)
        else:
            self._known[uid] = item
            self._receiver.changed(item)
