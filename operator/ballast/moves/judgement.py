"""After the replacement has run for a while: did it help?

Judged by what the application gained, not by the score alone: the gap of the two nodes must have narrowed, and the
slowness and the 95th percentile of the batches must have fallen, as far as each is known.
"""

from __future__ import annotations

from ballast.model import MovePhase
from ballast.moves.state import Figures, Replacement, Word, narrowed
from ballast.moves.step import Situation, Step, enter, wait


def settling(at: Situation) -> Step:
    claim = at.move.replacement
    since = at.now if at.move.timings.settling_at is None else at.move.timings.settling_at
    if at.facts.application_ended:
        return enter(at, MovePhase.SUCCEEDED, Word.APPLICATION_ENDED, "the application ended before it was judged")
    pod = at.facts.newcomer(claim.uid) if claim else None
    if claim is None or pod is None or not pod.present:
        message = f"{claim.pod if claim else 'the replacement'} was lost before it was judged"
        return enter(at, MovePhase.FAILED, Word.REPLACEMENT_LOST, message)
    due = since + at.settings.settle_seconds
    if at.now < due:
        return wait(at, due)
    after = _figures(at, claim)
    if _unknown(at.move.before, after) and at.now < due + at.settings.settle_seconds:
        return wait(at, due + at.settings.settle_seconds)
    return _judge(at, claim, after)


def _figures(at: Situation, claim: Replacement) -> Figures:
    return Figures(
        hot_score=at.facts.scores.get(at.move.orders.source),
        cold_score=at.facts.scores.get(claim.node or at.move.destination),
        slowness=at.facts.slowness.get(claim.uid),
        batch_p95_seconds=at.facts.batch_p95_seconds,
    )


def _judge(at: Situation, claim: Replacement, after: Figures) -> Step:
    before = at.move.before
    if claim.node == at.move.orders.source:
        message = f"{claim.pod} came back to {claim.node}"
        return enter(at, MovePhase.FAILED, Word.RETURNED_TO_SOURCE, message, after=after)
    better = helped(before, after)
    words = _words(at, before, after)
    if better is None:
        return enter(at, MovePhase.SUCCEEDED, Word.NOT_JUDGED, words, after=after)
    if better:
        return enter(at, MovePhase.SUCCEEDED, Word.HELPED, words, after=after)
    return enter(at, MovePhase.FAILED, Word.DID_NOT_HELP, words, after=after)


def helped(before: Figures, after: Figures) -> bool | None:
    """Whether everything that is known on both sides got better; None when nothing is."""
    gain = narrowed(before, after)
    verdicts = [] if gain is None else [gain > 0]
    for then, now in _pairs(before, after):
        if then is not None and now is not None:
            verdicts.append(now < then)
    return all(verdicts) if verdicts else None


def _pairs(before: Figures, after: Figures) -> tuple[tuple[float | None, float | None], ...]:
    return (
        (before.slowness, after.slowness),
        (before.batch_p95_seconds, after.batch_p95_seconds),
    )


def _unknown(before: Figures, after: Figures) -> bool:
    return helped(before, after) is None


def _words(at: Situation, before: Figures, after: Figures) -> str:
    said = []
    gain = narrowed(before, after)
    predicted = narrowed(at.move.orders.decided, at.move.orders.predicted)
    if gain is not None:
        foretold = "" if predicted is None else f", predicted {predicted:.1f}"
        said.append(f"the gap went from {before.gap:.1f} to {after.gap:.1f} points ({gain:+.1f}{foretold})")
    if before.slowness is not None and after.slowness is not None:
        said.append(f"slowness from {before.slowness:.2f} to {after.slowness:.2f}")
    if before.batch_p95_seconds is not None and after.batch_p95_seconds is not None:
        said.append(f"batch p95 from {before.batch_p95_seconds:.2f} to {after.batch_p95_seconds:.2f} s")
    return "; ".join(said) if said else "nothing was measured on both sides"
