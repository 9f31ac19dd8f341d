"""A pass's memory, read from and written to the custom resources' status."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime

from ballast.api.policy import BalancingPolicy
from ballast.api.policy_status import ApplicationFailures, ApplicationPlacement, PolicyStatus
from ballast.api.policy_status import Attempt as AttemptStatus
from ballast.api.policy_status import NodeHits as HitsStatus
from ballast.api.topology import SparkTopology
from ballast.controller.failures import Application, Failed
from ballast.controller.membership import key_of, namespace_of
from ballast.controller.observe import Pool
from ballast.model import Attempts, Memory, NodeHits

Places = tuple[tuple[str, str, tuple[tuple[str, int], ...]], ...]

# Together they keep a status below 64 KiB, at a thousand nodes with names as long as a cloud gives them.
_MOST_HITS = 80
_MOST_APPLICATIONS = 32
_APPLICATIONS_BYTES = 8_000
PLACEMENT_BYTES = 40_000
"""Of a topology's status; where a placement is recommended, each of the two has half of it."""
_STATE_BYTES = 16_000
_MOST_UNPACKED_BYTES = 1 << 20
"""Of what so much state can be packed from; more is none of Ballast's."""
_PUNCTUATION_BYTES = 4
_MOST_ATTEMPTS = 32
_MOST_FAILING = 32
_MOST_FAILED = 25
_LARGEST_COUNT = 1_000_000
_PLACING = "Placement."
"""Tells the state of a placement strategy from that of a shedding strategy of the same name."""
_NOTICES = "Notices"
"""In place of a strategy's name: since when nodes are about to go."""


def recalled(status: PolicyStatus, topologies: Collection[SparkTopology]) -> Memory:
    """The memory that an earlier pass, perhaps of another process, left in the objects' status."""
    state = sorted((name, text) for name, packed in status.state.items() if (text := _unpacked(packed)))
    return Memory(
        notices=_notices(_unpacked(status.state.get(_NOTICES, ""))),
        shedding=tuple((name, text) for name, text in state if name != _NOTICES and not name.startswith(_PLACING)),
        placement_state=tuple((name.removeprefix(_PLACING), text) for name, text in state if name.startswith(_PLACING)),
        placements=tuple(sorted((*_declared(topologies), *_implicit(status)))),
        scopes=tuple(sorted(_scopes(topologies))),
        attempts=tuple(
            Attempts(a.topology, a.component, a.count, a.last_time.timestamp() if a.last_time else 0.0)
            for a in status.attempts
        ),
    )


def state_status(memory: Memory) -> dict[str, str]:
    """What strategies remember, packed; left out where it is more than a status may hold."""
    found: dict[str, str] = {}
    left = _STATE_BYTES
    notices = [(_NOTICES, json.dumps(memory.notices))] if memory.notices else []
    placing = ((_PLACING + name, text) for name, text in memory.placement_state)
    for name, text in (*memory.shedding, *placing, *notices):
        packed = _packed(text)
        if len(packed) <= left:
            found[name] = packed
            left -= len(packed)
    return found


def attempts_status(memory: Memory) -> tuple[AttemptStatus, ...]:
    """Of too many, the latest."""
    kept = sorted(memory.attempts, key=lambda each: (-each.last_at, each.topology))[:_MOST_ATTEMPTS]
    return tuple(
        AttemptStatus(
            topology=each.topology,
            component=each.component,
            count=each.count,
            last_time=datetime.fromtimestamp(each.last_at, UTC),
        )
        for each in sorted(kept, key=lambda each: (each.topology, each.component))
    )


def failures_status(failures: Mapping[Application, Failed]) -> tuple[ApplicationFailures, ...]:
    """Of too many applications, those with the most failures."""
    kept = sorted(failures, key=lambda each: (-failures[each].count, each))[:_MOST_FAILING]
    return tuple(
        ApplicationFailures(
            namespace=namespace,
            application=application,
            count=min(failures[namespace, application].count, _LARGEST_COUNT),
            executors=tuple(sorted(failures[namespace, application].latest)[-_MOST_FAILED:]),
        )
        for namespace, application in sorted(kept)
    )


def recalled_failures(
    policies: Iterable[BalancingPolicy], namespaces: Mapping[str, Mapping[str, str]]
) -> dict[Application, Failed]:
    """What an earlier process counted. A policy's status is believed about the namespaces that it selects.

    `namespaces`: labels of each.
    """
    found: dict[Application, Failed] = {}
    for policy in policies:
        told_of = {entry.namespace for entry in policy.status.failures} & namespaces.keys()
        about = Pool.of(policy.spec).namespaces({name: namespaces[name] for name in told_of})
        for entry in policy.status.failures:
            if entry.namespace in about:
                key = (entry.namespace, entry.application)
                told = Failed(frozenset(entry.executors), max(0, entry.count - len(set(entry.executors))))
                found[key] = told.together(found.get(key, Failed()))
    return found


def _notices(text: str) -> tuple[tuple[str, str, float], ...]:
    """None of them where they can't be read: then they count from now."""
    try:
        return tuple((str(node), str(taint), float(since)) for node, taint, since in json.loads(text or "[]"))
    except (TypeError, ValueError):
        return ()


def _packed(text: str) -> str:
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def _unpacked(packed: str) -> str:
    """Empty for what can't be read, or is longer than any state: then the strategy starts again."""
    try:
        unpacking = zlib.decompressobj()
        text = unpacking.decompress(base64.b64decode(packed), _MOST_UNPACKED_BYTES).decode()
    except (ValueError, zlib.error):
        return ""
    return text if unpacking.eof else ""


def hits_status(hits: Mapping[str, NodeHits]) -> tuple[HitsStatus, ...]:
    """The hit counts, for people: strategies read their state. The highest where a status can't hold them all."""
    ranked = sorted(hits.items(), key=lambda item: (-item[1].low, -item[1].high, item[0]))[:_MOST_HITS]
    return tuple(
        HitsStatus(node=name, low=each.low, high=each.high, last_time=datetime.fromtimestamp(each.last_at, UTC))
        for name, each in sorted(ranked, key=lambda item: item[0])
    )


def application_status(memory: Memory, declared: frozenset[str]) -> tuple[ApplicationPlacement, ...]:
    """Where executors of applications without a SparkTopology (key not in `declared`) are."""
    undeclared = sorted({key for key, _, _ in memory.placements if key not in declared})[-_MOST_APPLICATIONS:]
    share = _APPLICATIONS_BYTES // max(1, len(undeclared))
    return tuple(
        ApplicationPlacement(
            namespace=namespace_of(key),
            application=key.split("/", 1)[1],
            placement=topology_placement(memory, key, most_bytes=share),
        )
        for key in undeclared
    )


def topology_placement(memory: Memory, key: str, *, most_bytes: int = PLACEMENT_BYTES) -> dict[str, dict[str, int]]:
    """Executors per component and node of one topology."""
    places = {component: counts for topology, component, counts in memory.placements if topology == key}
    return bounded_placement(places, most_bytes=most_bytes)


def bounded_placement(places: Mapping[str, Iterable[tuple[str, int]]], *, most_bytes: int) -> dict[str, dict[str, int]]:
    """Executors per component and node; of too many nodes, those with the most executors."""
    share = most_bytes // max(1, len(places)) - 2 * _PUNCTUATION_BYTES
    return {component: dict(_most(counts, share - len(component))) for component, counts in places.items()}


def _most(counts: Iterable[tuple[str, int]], most_bytes: int) -> list[tuple[str, int]]:
    kept = []
    for node, count in sorted(counts, key=lambda item: (-item[1], item[0])):
        most_bytes -= len(node) + len(str(count)) + _PUNCTUATION_BYTES
        if most_bytes < 0:
            break
        kept.append((node, count))
    return sorted(kept)


def _declared(topologies: Iterable[SparkTopology]) -> Places:
    return tuple(
        (key_of(topology), component, _counts(counts))
        for topology in topologies
        for component, counts in (topology.status.placement or {}).items()
    )


def _scopes(topologies: Iterable[SparkTopology]) -> Iterator[tuple[str, str, str]]:
    """How far components may spread; told of declared topologies only, others begin near again."""
    for topology in topologies:
        for component in topology.status.components:
            if component.scope:
                yield key_of(topology), component.name, component.scope


def _implicit(status: PolicyStatus) -> Places:
    return tuple(
        (f"{entry.namespace}/{entry.application}", component, _counts(counts))
        for entry in status.applications
        for component, counts in entry.placement.items()
    )


def _counts(counts: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(counts.items()))
