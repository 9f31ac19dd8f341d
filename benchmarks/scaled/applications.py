"""Applications whose executors need nodes: created, asked for more, let go, and created again when one was evicted."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from statistics import fmean

from benchmarks.load.pods import JSON, driver, executor
from benchmarks.load.server import RefusedError, Server
from benchmarks.load.sightings import EXECUTORS
from tests.testbed.nodes import ZONE_LABEL

PATIENCE_SECONDS = 180.0
_AT_ONCE = "gracePeriodSeconds=0"
_LOOK_SECONDS = 0.25
_REPLACE_SECONDS = 1.0
"""How often a driver looks whether it has the executors that it wants; Spark's default interval."""


@dataclass(slots=True)
class Applications:
    """Those of one namespace; their drivers want as many executors as `wanted` says, by application."""

    server: Server
    namespace: str
    driver_nodes: Mapping[str, str]
    """By application. Outside the pool."""
    wanted: dict[str, int] = field(default_factory=dict)
    created: Counter[str] = field(default_factory=Counter)
    _uids: dict[str, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def _pods(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"

    def grow(self, wanted: Mapping[str, int]) -> float:
        """Seconds from the last creation until all executors are bound; those that are not in time are left."""
        with self._lock:
            self.wanted |= wanted
            self._create()
        return self.until_bound()

    def shrink(self, kept: Mapping[str, frozenset[int]]) -> None:
        """Let all executors go except for these, by the order of their names."""
        with self._lock:
            for application, numbers in kept.items():
                there = sorted(self._of(application), key=lambda pod: int(pod["metadata"]["name"].rsplit("-", 1)[1]))
                gone = [pod for index, pod in enumerate(there) if index not in numbers]
                self.wanted[application] = len(there) - len(gone)
                self._each(lambda pod: self.server.delete(f"{self._pods}/{pod['metadata']['name']}"), gone)

    @contextmanager
    def replaced(self) -> Iterator[None]:
        """Meanwhile drivers ask for an executor for each that was evicted."""
        over = threading.Event()

        def work() -> None:
            while not over.wait(_REPLACE_SECONDS):
                with self._lock:
                    self._create()

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _create(self) -> None:
        there = Counter(application for pod in self.executors() if (application := _present(pod)))
        bodies: list[JSON] = []
        for application, wanted in self.wanted.items():
            if application not in self._uids:
                body = driver(application, namespace=self.namespace)
                body["spec"]["nodeName"] = self.driver_nodes[application]
                self._uids[application] = self.server.post(self._pods, body)["metadata"]["uid"]
            for _ in range(wanted - there[application]):
                self.created[application] += 1
                bodies.append(self._body(application, self.created[application]))
        self._each(lambda body: self.server.post(self._pods, body), bodies)

    def _body(self, application: str, number: int) -> JSON:
        return executor(number, application, namespace=self.namespace, driver_uid=self._uids[application], gated=False)

    def _each(self, work: object, items: list[JSON]) -> None:
        assert callable(work)
        with ThreadPoolExecutor(self.server.connections) as threads:
            list(threads.map(work, items))

    def _of(self, application: str) -> list[JSON]:
        return [pod for pod in self.executors() if _present(pod) == application]

    def executors(self) -> list[JSON]:
        items: list[JSON] = self.server.get(f"{self._pods}?{EXECUTORS}")["items"]
        return items

    def until_bound(self) -> float:
        started = time.monotonic()
        while self.without_node() and time.monotonic() < started + PATIENCE_SECONDS:
            time.sleep(_LOOK_SECONDS)
        return time.monotonic() - started

    def without_node(self) -> int:
        """Executors that are wanted and not on a node."""
        bound = sum(1 for pod in self.executors() if _present(pod) and pod["spec"].get("nodeName"))
        return sum(self.wanted.values()) - bound

    def cross_zone(self, nodes: list[JSON]) -> float:
        """Share of an all-to-all shuffle: 1 − Σp² over the zones' shares p, the mean of the applications."""
        zones = {node["metadata"]["name"]: node["metadata"]["labels"].get(ZONE_LABEL, "") for node in nodes}
        shares: dict[str, Counter[str]] = {}
        for pod in self.executors():
            if (application := _present(pod)) and pod["spec"].get("nodeName") in zones:
                shares.setdefault(application, Counter())[zones[pod["spec"]["nodeName"]]] += 1
        crossing = [1.0 - sum((n / each.total()) ** 2 for n in each.values()) for each in shares.values()]
        return fmean(crossing) if crossing else float("nan")

    def clear(self) -> None:
        self.wanted.clear()
        self._uids.clear()
        self.created.clear()
        while self.server.get(f"{self._pods}?limit=1")["items"]:
            with suppress(RefusedError):  # some are going by themselves
                self.server.delete(f"{self._pods}?{_AT_ONCE}")
            time.sleep(_LOOK_SECONDS)


def _present(pod: JSON) -> str:
    """The application of an executor that is neither ended nor about to go; empty for others."""
    if "deletionTimestamp" in pod["metadata"] or pod["status"].get("phase") in ("Succeeded", "Failed"):
        return ""
    application: str = pod["metadata"]["labels"]["spark-app-selector"]
    return application
