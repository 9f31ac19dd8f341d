"""Where one end of a stream is, and how far another end is from it."""

from __future__ import annotations

from dataclasses import dataclass

from ballast.model.location import Scope


@dataclass(frozen=True, slots=True)
class Place:
    """`process` tells processes of one node apart; a level that is not known is None."""

    node: str
    process: str | int | None = None
    rack: str | None = None
    zone: str | None = None


def scope_between(source: Place, target: Place | None) -> Scope:
    """The nearest scope that holds both; a target whose place is not known is as far as can be.

    Rack names count within their zone: equal names in two known zones are two racks.
    """
    if target is None:
        return Scope.CLUSTER
    if source.node == target.node:
        return Scope.PROCESS if source.process == target.process else Scope.NODE
    zones_differ = source.zone != target.zone and None not in (source.zone, target.zone)
    if source.rack is not None and source.rack == target.rack and not zones_differ:
        return Scope.RACK
    if source.zone is not None and source.zone == target.zone:
        return Scope.ZONE
    return Scope.CLUSTER
