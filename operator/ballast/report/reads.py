"""What `client.rack` alone would save of the bytes that an application reads from brokers, and what placement adds.

Spark passes one `kafka.client.rack` to all executors of an application. So with the option alone, only executors in
that one zone read from a replica of their own zone; the others read across, all of them. Placement into one zone makes
the option true for every executor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from ballast.model import Location, Topology


@dataclass(frozen=True, slots=True)
class Reads:
    """Bytes per second across zones that an application reads from its brokers."""

    total_bytes_per_second: float
    now: float
    with_client_rack: float
    """The option alone, set to the best zone. Needs `replica.selector.class` on brokers and a replica in that zone."""
    placed: float
    """Placement alone: partitions are read from their leaders."""
    placed_with_client_rack: float


def reads_of(topology: Topology, component: str, before: Sequence[Location], after: Sequence[Location]) -> Reads | None:
    """None where no stream with a rate and a place of its brokers is declared, or a zone is not labeled."""
    total = 0.0
    leaders: dict[str, float] = {}
    for stream in topology.streams:
        source = topology.component(stream.source)
        if stream.target != component or source is None or not source.external or not stream.bytes_per_second:
            continue
        for anchor in source.anchors:
            zone = anchor.location[0] if anchor.location else None
            if zone is None:
                return None
            leaders[zone] = leaders.get(zone, 0.0) + stream.bytes_per_second * anchor.share
            total += stream.bytes_per_second * anchor.share
    here, there = _zones(before), _zones(after)
    if total <= 0.0 or not here or not there:
        return None
    led = {zone: amount / total for zone, amount in leaders.items()}
    return Reads(
        total_bytes_per_second=total,
        now=total * _from_leaders(here, led),
        with_client_rack=total * min(_from_leaders(here, led), _with_option(here, led)),
        placed=total * _from_leaders(there, led),
        placed_with_client_rack=total * min(_from_leaders(there, led), _with_option(there, led)),
    )


def _zones(places: Sequence[Location]) -> Mapping[str, float] | None:
    zones = [place[0] if len(place) > 1 else None for place in places]
    known = [zone for zone in zones if zone is not None]
    if not known or len(known) < len(zones):
        return None
    return {zone: count / len(known) for zone, count in Counter(known).items()}


def _from_leaders(executors: Mapping[str, float], leaders: Mapping[str, float]) -> float:
    return 1.0 - fsum(share * leaders.get(zone, 0.0) for zone, share in executors.items())


def _with_option(executors: Mapping[str, float], brokers: Mapping[str, float]) -> float:
    return 1.0 - max((executors.get(zone, 0.0) for zone in brokers), default=0.0)
