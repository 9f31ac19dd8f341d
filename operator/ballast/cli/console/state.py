"""What the console's page shows: all pools at one moment as one JSON document, and what placing again would change.

The first is the documents of `status -o json` and `plan -o json`, with each executor and all moves that are kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ballast.api import ExecutorMove
from ballast.cli.output import rounded
from ballast.cli.plan import Planned, plan_document, planned
from ballast.cli.report.pool import instant, move_document
from ballast.cli.situation import Situation
from ballast.cli.source import Seen
from ballast.cli.status import pool_document
from ballast.errors import BallastError
from ballast.model import Gap, Phase, Refusal
from ballast.report.names import application_names


@dataclass(frozen=True, slots=True)
class Gains:
    """Points by which a move was to narrow the gap between its two nodes, and did; None where that is not known."""

    predicted: float | None = None
    measured: float | None = None


GainsByMove = Mapping[tuple[str, str], Gains]
"""By namespace and name."""


def state(seen: Seen) -> dict[str, Any]:
    """`operatorRuns` is null for a file, and where leases may not be read."""
    gains = _gains(seen)
    return {
        "operatorRuns": seen.operator_runs,
        "fromFile": seen.from_file,
        "problems": list(seen.problems),
        "pools": [pool_state(each, gains) for each in seen.situations],
    }


def placed_again(seen: Seen) -> dict[str, Any]:
    """By policy, each topology as it is and as it would be if all were placed again: seconds of work in large pools."""
    return {"pools": {each.policy.name: plan_document(planned(each))["topologies"] for each in seen.situations}}


def pool_state(situation: Situation, gains: GainsByMove) -> dict[str, Any]:
    """As of `status`, with `plan`, whose refusals are counted by reason, `executors` and `timeline`.

    An executor is a list, since there may be ten thousand: name, topology, node, phase. Topology and node are positions
    in `topologies` and in `nodes.items`; node is null where it has none of this pool.
    """
    decided = situation.plan()
    found = pool_document(situation, decided)
    nodes = {node["name"]: position for position, node in enumerate(found["nodes"]["items"])}
    topologies = {each["topology"]: position for position, each in enumerate(found["topologies"])}
    names = application_names(situation.snapshot.executors)
    return {
        **found,
        "plan": {**plan_document(Planned(situation, decided, replanned=())), "refusals": _by_reason(decided.refusals)},
        "executors": [
            [each.key, topologies.get(each.topology), nodes.get(each.node or ""), each.phase.value]
            for each in situation.snapshot.executors
            if each.phase is not Phase.ENDED
        ],
        "timeline": [
            {
                **move_document(move),
                "topologyName": names.get(move.topology, move.topology),
                "startedSeconds": move.started_at,
                "endedSeconds": move.ended_at,
                "predictedGain": rounded((own := gains.get((move.namespace, move.name), Gains())).predicted),
                "measuredGain": rounded(own.measured),
            }
            for move in sorted(situation.snapshot.moves, key=lambda move: (move.started_at, move.namespace, move.name))
        ],
        "nowSeconds": situation.now,
        "time": instant(situation.now),
    }


def _by_reason(refusals: Sequence[Refusal]) -> list[dict[str, Any]]:
    """With how many there are of each, and one of them; the rarest first, so that no crowd hides them."""
    first = {each.reason: each for each in reversed(refusals)}
    return [
        {"reason": reason.value, "count": count, "subject": first[reason].subject, "detail": first[reason].detail}
        for reason, count in reversed(Counter(each.reason for each in refusals).most_common())
    ]


def _gains(seen: Seen) -> GainsByMove:
    """Of the moves that a cluster has; a file keeps none."""
    found = {}
    for raw in seen.view.objects.moves if seen.view is not None else ():
        try:
            move = ExecutorMove.parse(raw)
        except BallastError:
            # The look has named it among the problems.
            continue
        found[move.metadata.namespace or "", move.metadata.name] = gains_of(move)
    return found


def gains_of(move: ExecutorMove) -> Gains:
    """The prediction is by the scores at the time of the decision."""
    reason, after = move.spec.reason, move.spec.predicted
    scores = reason.scores if reason is not None else None
    predicted = None
    if scores is not None and after is not None:
        before = Gap(float(scores.from_), float(scores.to))
        predicted = before.narrowed(Gap(float(after.hot_after), float(after.cold_after)))
    measured = move.status.measured.gain if move.status is not None and move.status.measured is not None else None
    return Gains(predicted, None if measured is None else float(measured))
