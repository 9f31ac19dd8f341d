"""What a tenant may create to no good end: moves of nothing, topologies of nothing, pods that are long to read.

Words that would do harm if they were read as PromQL, HTML, a format string or a terminal's stand wherever the API
server takes any; names are as long as it takes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import Any
from uuid import UUID

from ballast.kube import names
from ballast.kube.kinds import EXECUTOR_MOVE, POD, SPARK_TOPOLOGY, Kind
from benchmarks.load.pods import POOL
from benchmarks.load.server import Server

JSON = dict[str, Any]
WORDS = ('"} or {__name__=~".+', "<script>alert(1)</script>", "\x1b[2J\x1b]0;x\x07", "%s%n{0}{0.__class__}")
LONGEST_NAME = 253
LONGEST_ANNOTATIONS = 250_000
"""Bytes of them in one object: the API server takes 256 KiB, the words included."""
KINDS = (EXECUTOR_MOVE, SPARK_TOPOLOGY, POD)


@dataclass(frozen=True, slots=True)
class Amounts:
    moves: int = 1_500
    topologies: int = 1_000
    pods: int = 100

    @property
    def all(self) -> int:
        return self.moves + self.topologies + self.pods


def junk(amounts: Amounts) -> list[tuple[Kind, JSON]]:
    """Mixed, so that all of it comes all the time."""
    made = [
        *((index / amounts.moves, EXECUTOR_MOVE, _move(index)) for index in range(amounts.moves)),
        *((index / amounts.topologies, SPARK_TOPOLOGY, _topology(index)) for index in range(amounts.topologies)),
        *((index / amounts.pods, POD, _executor(index)) for index in range(amounts.pods)),
    ]
    return [(kind, body) for _, kind, body in sorted(made, key=lambda each: each[0])]


def pour(server: Server, namespace: str, bodies: Sequence[tuple[Kind, JSON]], *, seconds: float) -> None:
    """All of them, evenly over so long, or as fast as the API server takes them where that is slower."""
    started = time.monotonic()

    def create(index: int, kind: Kind, body: JSON) -> None:
        time.sleep(max(0.0, started + index * seconds / len(bodies) - time.monotonic()))
        server.post(kind.path(namespace=namespace), body)

    with ThreadPoolExecutor(server.connections // 2) as threads:
        for done in [threads.submit(create, index, *each) for index, each in enumerate(bodies)]:
            done.result()


def _metadata(prefix: str, index: int, **more: object) -> JSON:
    name = f"{prefix}-{index}-"
    return {
        "name": name + "x" * (LONGEST_NAME - len(name)),
        "annotations": {"words": WORDS[index % len(WORDS)]},
        **more,
    }


def _move(index: int) -> JSON:
    return {
        "apiVersion": EXECUTOR_MOVE.api_version,
        "kind": EXECUTOR_MOVE.kind,
        "metadata": _metadata("junk", index),
        "spec": {
            "topologyName": "no-such",
            "executor": {"pod": f"no-such-{index}", "uid": str(UUID(int=index))},
            "sourceNodeName": "node-0000",
            "targetNodeName": "node-0001",
            "approved": True,
        },
    }


def _topology(index: int) -> JSON:
    words = WORDS[index % len(WORDS)]
    pairs = [(f"part-{number}", f"part-{number + 1}") for number in range(5)]
    parts = [{"name": name, "workload": "Streaming", "executors": 100_000} for name in chain.from_iterable(pairs[::2])]
    streams = [{"from": a, "to": b, "grouping": "Shuffle", "rate": {"query": words}} for a, b in pairs]
    return {
        "apiVersion": SPARK_TOPOLOGY.api_version,
        "kind": SPARK_TOPOLOGY.kind,
        "metadata": _metadata("junk", index),
        "spec": {"components": parts, "streams": streams},
    }


def _executor(index: int) -> JSON:
    """Gated, of an application of its own, and too large for every node."""
    metadata = _metadata("junk", index)
    metadata["annotations"]["much"] = "x" * LONGEST_ANNOTATIONS
    metadata["labels"] = {
        names.SPARK_ROLE: "executor",
        names.SPARK_APPLICATION: f"junk-{index}",
        names.SPARK_EXECUTOR_ID: "1",
        names.SPARK_RESOURCE_PROFILE: "0",
        names.TOPOLOGY: "no-such",
    }
    container = {"name": "main", "image": "spark", "resources": {"requests": {"cpu": "1000", "memory": "64Mi"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container], "nodeSelector": POOL},
    }
