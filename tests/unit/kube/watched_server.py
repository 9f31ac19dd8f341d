"""A server of one kind of objects, as much of it as an informer asks: pages, and watches that a test feeds."""

from __future__ import annotations

import json
import queue
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Self

import msgspec

from ballast.kube.document import Page, PageMetadata
from ballast.kube.errors import KubeError, Unavailable
from ballast.kube.informer import number
from ballast.kube.kinds import Kind

JSON = dict[str, Any]


class Watch:
    """One watch that was opened: what it was opened with, and what it will hear."""

    def __init__(self, parameters: Mapping[str, str]) -> None:
        self.parameters = dict(parameters)
        self._lines: queue.Queue[bytes | KubeError | None] = queue.Queue()
        self.closed = False
        self.newest = 0
        """The highest version that was sent."""

    def send(self, kind: str, body: JSON) -> None:
        self.newest = max(self.newest, number(body["metadata"].get("resourceVersion")))
        self._lines.put(json.dumps({"type": kind, "object": body}).encode())

    def send_raw(self, line: bytes) -> None:
        self._lines.put(line)

    def fail(self, error: KubeError) -> None:
        self._lines.put(error)

    def end(self) -> None:
        """As the server does when the time is up that it was asked for."""
        self._lines.put(None)

    def close(self) -> None:
        self.closed = True
        self._lines.put(None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        del kind, error

    def __iter__(self) -> Iterator[bytes]:
        while (line := self._lines.get(timeout=30)) is not None:
            if isinstance(line, KubeError):
                raise line
            yield line


class WatchedServer:
    """Stands in for a Client. `lists`: the items of each list in turn, the last one again and again."""

    def __init__(self, *lists: list[JSON]) -> None:
        self._lists = list(lists) or [[]]
        self.version = 100
        """Of the next list."""
        self.listed = 0
        self.asked: list[dict[str, str]] = []
        """With what each page was asked for."""
        self.opened: queue.Queue[Watch] = queue.Queue()
        self._watches: list[Watch] = []
        self.refusals: list[KubeError] = []
        """What the next requests for a watch are answered."""

    def get_page(self, kind: Kind, parameters: Mapping[str, str], **options: Any) -> Page:
        del kind, options
        if parameters.get("limit") == "1":
            return Page(PageMetadata(str(max(self.version, *(each.newest for each in self._watches), 0))), ())
        self.asked.append(dict(parameters))
        self.listed += 1
        items = self._lists.pop(0) if len(self._lists) > 1 else self._lists[0]
        raws = tuple(msgspec.Raw(json.dumps(item).encode()) for item in items)
        return Page(PageMetadata(str(self.version)), raws)

    def stream(self, kind: Kind, parameters: Mapping[str, str], **options: Any) -> Watch:
        del kind, options
        if self.refusals:
            raise self.refusals.pop(0)
        watch = Watch(parameters)
        self._watches.append(watch)
        self.opened.put(watch)
        return watch

    def next_watch(self) -> Watch:
        return self.opened.get(timeout=30)


def silent() -> KubeError:
    """What a stream raises when nothing comes for longer than bookmarks allow."""
    return Unavailable("watch pods", "the watch broke off: read timed out")


class WatchedCluster:
    """Stands in for a Client: a server of each kind, with these objects in its list; each gets a uid and a version."""

    def __init__(self, **objects: list[JSON]) -> None:
        self.servers: dict[str, WatchedServer] = {}
        for plural, items in objects.items():
            self.servers[plural] = WatchedServer([identified(item, version) for version, item in enumerate(items, 1)])

    def server(self, plural: str) -> WatchedServer:
        return self.servers.setdefault(plural, WatchedServer())

    def get_page(self, kind: Kind, parameters: Mapping[str, str], **options: Any) -> Page:
        return self.server(kind.plural).get_page(kind, parameters, **options)

    def stream(self, kind: Kind, parameters: Mapping[str, str], **options: Any) -> Watch:
        return self.server(kind.plural).stream(kind, parameters, **options)


def identified(item: JSON, version: int) -> JSON:
    metadata = item["metadata"]
    return {**item, "metadata": {"uid": f"uid-{metadata['name']}", **metadata, "resourceVersion": str(version)}}
