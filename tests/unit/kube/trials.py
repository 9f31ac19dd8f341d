"""Trials of an informer: faults one after the other, and how soon it knows everything again."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ballast.kube.client import Limits
from ballast.kube.document import JSON
from ballast.kube.informer import Informer, Store, Timing
from ballast.kube.kinds import POD
from ballast.kube.objects import Query
from tests.apiserver import ApiServer, Fault, serving
from tests.testbed.waiting import wait_until

TIMING = Timing(
    connect_seconds=2.0,
    silent_seconds=1.0,
    server_seconds=300.0,
    resync_seconds=3600.0,
    first_backoff_seconds=0.05,
    longest_backoff_seconds=0.2,
)
"""Bookmarks come every 0.2 s here: silence is noticed after five, as with the defaults after one and a quarter."""
PODS = 20
_CHANGES = 10
_GIVE_UP_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Recovery:
    fault: Fault
    asked_after_seconds: float
    """From the fault until the informer asked again."""
    complete_after_seconds: float
    """From the fault until the store had everything that the server has."""


def recoveries(folder: Path, chance: random.Random) -> list[Recovery]:
    """One informer that meets every fault, in a random order, while pods change. Raises when it does not recover."""
    with serving(ApiServer(bookmark_seconds=0.2)) as server:
        store: Store[JSON] = Store(lambda pod: pod, lambda _before, _after: None)
        client = server.client(folder, Limits(connect_seconds=2.0, read_seconds=2.0, attempts=1))
        informer = Informer(client, Query(POD), store, monotonic=time.monotonic, timing=TIMING, chance=chance)
        for number in range(PODS):
            _put(server, f"pod-{number}")
        informer.start()
        try:
            _await_complete(server, store, "at first")
            faults = chance.sample(list(Fault), len(Fault))
            return [_struck(server, store, fault, chance) for fault in faults]
        finally:
            informer.stop()
            client.close()


@contextmanager
def burners(count: int) -> Iterator[None]:
    """So many processes that each take what they get of a core."""
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for each in spinning:
            each.kill()
            each.wait()


def _struck(server: ApiServer, store: Store[JSON], fault: Fault, chance: random.Random) -> Recovery:
    _change(server, chance)
    asked = len(server.asked)
    struck = time.monotonic()
    server.strike(fault, further=chance.randint(0, 2))
    _change(server, chance)
    _await_complete(server, store, fault.value)
    complete = time.monotonic()
    return Recovery(fault, server.asked[asked].at - struck, complete - struck)


def _put(server: ApiServer, uid: str) -> None:
    server.put("pods", {"metadata": {"uid": uid, "name": uid, "namespace": "ns"}, "spec": {}})


def versions(server: ApiServer) -> dict[str, int]:
    """What a complete store has: versions by uid."""
    return {each["metadata"]["uid"]: int(each["metadata"]["resourceVersion"]) for each in server.all("pods")}


def _change(server: ApiServer, chance: random.Random) -> None:
    for _ in range(_CHANGES):
        uid = f"pod-{chance.randrange(2 * PODS)}"
        if chance.random() < 0.3:
            server.remove("pods", uid, "ns")
        else:
            _put(server, uid)


def _await_complete(server: ApiServer, store: Store[JSON], what: str) -> None:
    def complete() -> bool:
        return {uid: store.version(uid) for uid in store.uids()} == versions(server)

    wait_until(complete, what=f"complete again after: {what}", timeout_seconds=_GIVE_UP_SECONDS, poll_seconds=0.02)
