"""Events about pods, sent in the background; losing one is no failure."""

from __future__ import annotations

import asyncio
import logging
import time

import aiohttp

from tests.testbed.kubelet.client import ApiError, Client, Json
from tests.testbed.kubelet.status import timestamp

log = logging.getLogger(__name__)
QUEUE_LENGTH = 200


class Events:
    """Sends the events of one node. The same words about the same pod are sent once."""

    def __init__(self, client: Client, node_name: str) -> None:
        self._client = client
        self._node_name = node_name
        self._queue: asyncio.Queue[Json] = asyncio.Queue(QUEUE_LENGTH)
        self._told: dict[tuple[str, str, str], None] = {}

    def tell(self, pod: Json, reason: str, message: str, *, warning: bool = False) -> None:
        key = (pod["metadata"]["uid"], reason, message)
        if reason != "Started" and key in self._told:
            return
        self._told[key] = None
        if len(self._told) > 10 * QUEUE_LENGTH:
            self._told.pop(next(iter(self._told)))
        if not self._queue.full():
            self._queue.put_nowait(self._event(pod, reason, message, warning=warning))

    def _event(self, pod: Json, reason: str, message: str, *, warning: bool) -> Json:
        metadata, now = pod["metadata"], timestamp(time.time())
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": f"{metadata['name']}.", "namespace": metadata["namespace"]},
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": metadata["name"],
                "namespace": metadata["namespace"],
                "uid": metadata["uid"],
            },
            "reason": reason,
            "message": message[:1024],
            "type": "Warning" if warning else "Normal",
            "source": {"component": "kubelet", "host": self._node_name},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }

    async def run(self) -> None:
        while True:
            event = await self._queue.get()
            path = f"/api/v1/namespaces/{event['metadata']['namespace']}/events"
            try:
                await self._client.post(path, event)
            except (ApiError, aiohttp.ClientError, TimeoutError, OSError) as error:
                log.debug("event lost: %s", error)
