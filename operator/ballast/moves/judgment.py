"""Whether a move helped, once its replacement has run for a while. The operator and the simulator ask `verdict`.

What the application gained decides: the slowness of the executor, and the median and the 95th percentile of the batch
times. The gap between the scores of the two nodes decides only where the application shows no change.

The gap (`ballast.model.Gap`) is signed: the score of the node that was left minus the score of the destination. A gap
that narrowed by less than a third of what the move had predicted counts as unchanged: so much comes of other load, too.

Where the application was measured on one side of the move alone, the outcome is unknown: its input has dried up or come
back, and the gap follows from that.

Samples of the metric window must all be newer than the replacement's start-up. `moves.settle` is at least the window
plus the interval, so that at least one interval is left out. Where the application is slower than before at that time,
its executors may still be compiling, or catching up with the batches that waited: the move is judged when it no longer
is, and no later than after another `moves.settle`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

from ballast.model import MovePhase
from ballast.moves.state import MoveMetrics, MoveReason, Replacement, elsewhere, narrowed
from ballast.moves.step import Situation, Step, enter, wait


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Changes up to this size are noise: neither better nor worse."""

    ratio: float = 0.05
    """Share of the value before."""
    gap_points: float = 2.0
    """For the gap, at least so many points of score."""
    predicted_share: float = 1.0 / 3.0
    """For the gap to count as narrower: the share of the predicted gain that was measured."""


TOLERANCE = Tolerance()


class Change(Enum):
    BETTER = auto()
    SAME = auto()
    WORSE = auto()


def verdict(
    before: MoveMetrics,
    after: MoveMetrics,
    *,
    predicted_points: float | None = None,
    tolerance: Tolerance = TOLERANCE,
) -> MoveReason:
    """Helped, DidNotHelp, Inconclusive or NotJudged, by what is known on both sides.

    `predicted_points`: by which the gap was to narrow; None: nothing was predicted.
    Inconclusive: the application's signals contradict each other, or the application gained while the gap widened.
    NotJudged: nothing is known on both sides, or the application was measured on one side alone.
    """
    if _one_sided(before, after):
        return MoveReason.NOT_JUDGED
    felt, gap = set(_felt(before, after, tolerance)), _gap(before, after, predicted_points, tolerance)
    if not felt and gap is None:
        return MoveReason.NOT_JUDGED
    if Change.BETTER in felt:
        contradicted = Change.WORSE in felt or gap is Change.WORSE
        return MoveReason.INCONCLUSIVE if contradicted else MoveReason.HELPED
    if Change.WORSE in felt:
        return MoveReason.DID_NOT_HELP
    if gap is None:
        return MoveReason.INCONCLUSIVE
    return MoveReason.HELPED if gap is Change.BETTER else MoveReason.DID_NOT_HELP


def _one_sided(before: MoveMetrics, after: MoveMetrics) -> bool:
    """Whether batches were processed on one side alone; without any batches, whether tasks were."""
    batches = (_batches(before), _batches(after))
    if any(batches):
        return not all(batches)
    return (before.slowness is None) != (after.slowness is None)


def _batches(side: MoveMetrics) -> bool:
    return side.batch_p50_seconds is not None or side.batch_p95_seconds is not None


def slower(before: MoveMetrics, after: MoveMetrics, tolerance: Tolerance = TOLERANCE) -> bool:
    """Whether any signal of the application is worse than before."""
    return Change.WORSE in _felt(before, after, tolerance)


def _felt(before: MoveMetrics, after: MoveMetrics, tolerance: Tolerance) -> Iterator[Change]:
    """The change of each of the application's signals that is known on both sides; lower is better."""
    for then, now in (
        (before.slowness, after.slowness),
        (before.batch_p50_seconds, after.batch_p50_seconds),
        (before.batch_p95_seconds, after.batch_p95_seconds),
    ):
        if then is not None and now is not None:
            yield _change(then - now, noise=tolerance.ratio * then)


def _gap(
    before: MoveMetrics, after: MoveMetrics, predicted_points: float | None, tolerance: Tolerance
) -> Change | None:
    if before.gap is None or after.gap is None:
        return None
    noise = max(tolerance.gap_points, tolerance.ratio * abs(before.gap.points))
    gain = before.gap.narrowed(after.gap)
    found = _change(gain, noise=noise)
    short = predicted_points is not None and gain < tolerance.predicted_share * predicted_points
    return Change.SAME if found is Change.BETTER and short else found


def _change(gain: float, *, noise: float) -> Change:
    if gain > noise:
        return Change.BETTER
    return Change.WORSE if gain < -noise else Change.SAME


def settling(at: Situation) -> Step:
    claim = at.move.replacement
    since = at.now if at.move.timings.settling_at is None else at.move.timings.settling_at
    if at.facts.application_ended:
        return enter(
            at, MovePhase.SUCCEEDED, MoveReason.APPLICATION_ENDED, "the application ended before it was judged"
        )
    pod = at.facts.newcomer(claim.uid) if claim else None
    if claim is None or pod is None or not pod.present:
        message = f"{claim.pod if claim else 'the replacement'} was lost before it was judged"
        return enter(at, MovePhase.FAILED, MoveReason.REPLACEMENT_LOST, message)
    if at.move.orders.taint:
        return _drained(at, claim)
    due = since + at.settings.settle_seconds
    if at.now < due:
        return wait(at, due)
    after = _metrics(at, claim)
    if claim.node == at.move.orders.source:
        message = f"{claim.pod} came back to {claim.node}{elsewhere(at.move, claim)}"
        return enter(at, MovePhase.FAILED, MoveReason.RETURNED_TO_SOURCE, message, after=after)
    return _judge(at, claim, after, last=due + at.settings.settle_seconds)


def _drained(at: Situation, claim: Replacement) -> Step:
    """A drain is to get the executor off its node, and gains nothing that could be measured."""
    orders = at.move.orders
    if claim.node == orders.source:
        message = f"{claim.pod} came back to {claim.node}"
        return enter(at, MovePhase.FAILED, MoveReason.RETURNED_TO_SOURCE, message)
    message = (
        f"{claim.pod} runs on {claim.node}{elsewhere(at.move, claim)}; {orders.source} is about to go ({orders.taint})"
    )
    return enter(at, MovePhase.SUCCEEDED, MoveReason.DRAINED, message)


def _metrics(at: Situation, claim: Replacement) -> MoveMetrics:
    return MoveMetrics(
        hot_score=at.facts.scores.get(at.move.orders.source),
        cold_score=at.facts.scores.get(claim.node or at.move.destination),
        slowness=at.facts.slowness.get(claim.uid),
        batch_p50_seconds=at.facts.batch_p50_seconds,
        batch_p95_seconds=at.facts.batch_p95_seconds,
    )


def _judge(at: Situation, claim: Replacement, after: MoveMetrics, *, last: float) -> Step:
    before, orders = at.move.before, at.move.orders
    # What the author of a move by hand predicted is no measure.
    predicted = None if orders.by_hand else narrowed(orders.decided, orders.predicted)
    found = verdict(before, after, predicted_points=predicted)
    if at.now < last and (found is MoveReason.NOT_JUDGED or slower(before, after)):
        return wait(at, last)
    phase = MovePhase.FAILED if found is MoveReason.DID_NOT_HELP else MovePhase.SUCCEEDED
    astray = elsewhere(at.move, claim)
    place = f"{claim.pod} runs on {claim.node}{astray}; " if astray else ""
    return enter(at, phase, found, place + _words(at, before, after), after=after)


def _words(at: Situation, before: MoveMetrics, after: MoveMetrics) -> str:
    told = []
    if _one_sided(before, after):
        told.append("the application was measured on one side of the move alone")
    predicted = narrowed(at.move.orders.decided, at.move.orders.predicted)
    if before.gap is not None and after.gap is not None:
        foretold = "" if predicted is None else f", predicted {predicted:.1f}"
        gain = before.gap.narrowed(after.gap)
        told.append(
            f"the gap went from {before.gap.points:.1f} to {after.gap.points:.1f} points ({gain:+.1f}{foretold})"
        )
    for name, then, now, unit in (
        ("slowness", before.slowness, after.slowness, ""),
        ("median batch", before.batch_p50_seconds, after.batch_p50_seconds, " s"),
        ("batch p95", before.batch_p95_seconds, after.batch_p95_seconds, " s"),
    ):
        if then is not None and now is not None:
            told.append(f"{name} from {then:.2f} to {now:.2f}{unit}")
    return "; ".join(told) if told else "nothing was measured on both sides"
