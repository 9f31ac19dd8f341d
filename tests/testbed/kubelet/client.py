"""A small asynchronous client of the Kubernetes API: JSON in, JSON out, over one pool of connections."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import ssl
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from ballast.errors import BallastError

Json = dict[str, Any]
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"

log = logging.getLogger(__name__)


class ApiError(BallastError):
    """The API server refused a request. `status` is the HTTP status code."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


@dataclass(frozen=True, slots=True)
class Credentials:
    server: str
    context: ssl.SSLContext | None
    token: str | None


def _entry(items: list[Json], name: str, kind: str) -> Json:
    return dict(next(item for item in items if item["name"] == name)[kind])


def _material(entry: Json, key: str, base: Path) -> bytes | None:
    if data := entry.get(f"{key}-data"):
        return base64.b64decode(data)
    return (base / entry[key]).read_bytes() if entry.get(key) else None


def load_kubeconfig(path: Path) -> Credentials:
    """Server, TLS context and token of the current context of a kubeconfig file."""
    document = yaml.safe_load(path.read_text())
    context = _entry(document["contexts"], document["current-context"], "context")
    cluster = _entry(document["clusters"], context["cluster"], "cluster")
    user = _entry(document["users"], context["user"], "user")
    if not cluster["server"].startswith("https"):
        return Credentials(cluster["server"], None, user.get("token"))
    authority = _material(cluster, "certificate-authority", path.parent)
    tls = ssl.create_default_context(cadata=authority.decode() if authority else None)
    certificate, key = (_material(user, f"client-{part}", path.parent) for part in ("certificate", "key"))
    if certificate and key:
        with tempfile.NamedTemporaryFile() as file:
            file.write(certificate + b"\n" + key)
            file.flush()
            tls.load_cert_chain(file.name)
    return Credentials(cluster["server"], tls, user.get("token"))


class Client:
    """Requests with the credentials of one kubeconfig. Connection failures are `aiohttp.ClientError`."""

    def __init__(self, credentials: Credentials) -> None:
        headers = {"Authorization": f"Bearer {credentials.token}"} if credentials.token else {}
        connector = aiohttp.TCPConnector(ssl=credentials.context or False, limit=0)
        self._session = aiohttp.ClientSession(credentials.server, connector=connector, headers=headers)

    async def aclose(self) -> None:
        await self._session.close()

    async def request(
        self, method: str, path: str, *, body: Json | None = None, content_type: str = "application/json"
    ) -> Json:
        """One request. Raises ApiError for any status of 400 and above."""
        async with self._session.request(
            method,
            path,
            data=None if body is None else json.dumps(body),
            headers={"Content-Type": content_type},
            timeout=aiohttp.ClientTimeout(total=30),
        ) as response:
            text = await response.text()
            if response.status >= 400:
                raise ApiError(response.status, text[:1000])
            return dict(json.loads(text))

    async def get(self, path: str) -> Json:
        return await self.request("GET", path)

    async def post(self, path: str, body: Json) -> Json:
        return await self.request("POST", path, body=body)

    async def patch(self, path: str, body: Json, *, content_type: str = MERGE) -> Json:
        return await self.request("PATCH", path, body=body, content_type=content_type)

    async def delete(self, path: str, body: Json) -> Json:
        return await self.request("DELETE", path, body=body)

    async def watch(self, path: str, *, query: str, version: str) -> AsyncIterator[Json]:
        """Watch events from `version` on, bookmarks included, until the server ends the stream."""
        separator = "&" if query else ""
        url = f"{path}?{query}{separator}watch=true&allowWatchBookmarks=true&resourceVersion={version}"
        timeout = aiohttp.ClientTimeout(total=None, sock_read=600)
        async with self._session.get(url, timeout=timeout, read_bufsize=2**20) as response:
            if response.status >= 400:
                raise ApiError(response.status, (await response.text())[:1000])
            pending = b""
            async for chunk in response.content.iter_any():
                *lines, pending = (pending + chunk).split(b"\n")
                for line in lines:
                    yield json.loads(line)


async def persist(description: str, attempt: Any, *, first_delay_seconds: float = 0.2) -> Any:
    """Call `attempt` until it neither fails to connect nor meets an overloaded server, and return its result.

    Other refusals (ApiError below 500, except 429) are raised at once.
    """
    delay = first_delay_seconds
    while True:
        try:
            return await attempt()
        except ApiError as error:
            if error.status < 500 and error.status != 429:
                raise
            log.info("%s: %s; again in %.1f s", description, error, delay)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            log.info("%s: %s; again in %.1f s", description, error, delay)
        await asyncio.sleep(delay)
        delay = min(delay * 2, 3.0)
