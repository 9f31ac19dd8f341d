"""Where gating rests because the API server refuses releases, and for how long: a circuit breaker per namespace.

A webhook or a policy that acts on updates of pods may refuse every release: by a denial, by a field that may not be
changed, or by one that Ballast may not change. Without Ballast such executors run. So their namespace is taken out of
the gate switch, and returns after a while, which doubles if its releases are refused again.

The memory is in the status of the GateSwitch, so that the next leader goes on with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ballast.kube.document import JSON, ReadOnlyJSON, seconds, text

FIRST_SECONDS, LONGEST_SECONDS = 300.0, 3600.0
_FORGET_SECONDS = 3600.0
"""After its end a rest is remembered for as long: the next one is twice as long."""
_MESSAGE_LENGTH = 300


@dataclass(frozen=True, slots=True)
class Rest:
    """Times are in seconds since the epoch."""

    namespace: str
    since: float
    until: float
    message: str
    """What the API server answered to a release."""

    def lasts(self, now: float) -> bool:
        # The wall clock may have stepped backwards.
        return abs(now - self.since) < self.until - self.since


def after(rests: Iterable[Rest], refused: Mapping[str, str], now: float) -> tuple[Rest, ...]:
    """The rests once releases were refused in the namespaces of `refused`, with these answers."""
    known = {each.namespace: each for each in rests if abs(now - each.until) < _FORGET_SECONDS or each.lasts(now)}
    for namespace, answer in refused.items():
        last = known.get(namespace)
        if last is not None and last.lasts(now):
            continue
        pause = FIRST_SECONDS if last is None else min(LONGEST_SECONDS, 2.0 * (last.until - last.since))
        # Statuses have whole seconds.
        known[namespace] = Rest(namespace, float(int(now)), float(int(now)) + pause, answer[:_MESSAGE_LENGTH])
    return tuple(known[namespace] for namespace in sorted(known))


def lasting(rests: Iterable[Rest], now: float) -> dict[str, Rest]:
    """By namespace, those that have not ended."""
    return {each.namespace: each for each in rests if each.lasts(now)}


def rests_of(status: ReadOnlyJSON) -> tuple[Rest, ...]:
    """From the status of a GateSwitch. Another client may have written any times there: those count for nothing."""
    found = []
    for each in status.get("refusals") or ():
        since, until = seconds(each.get("since")), seconds(each.get("until"))
        if since is not None and until is not None and 0.0 < until - since <= LONGEST_SECONDS:
            found.append(Rest(each["namespace"], since, until, each.get("message") or ""))
    return tuple(found)


def written(rests: Iterable[Rest]) -> list[JSON]:
    """As the status of a GateSwitch has them."""
    return [
        {"namespace": each.namespace, "message": each.message, "since": text(each.since), "until": text(each.until)}
        for each in rests
    ]


def refused_words(rest: Rest) -> str:
    """Why executors of a namespace are not gated."""
    return (
        f"the API server refuses to release {rest.namespace}'s executors, so none is gated and placed before "
        f"{text(rest.until)}: {rest.message}; let Ballast's account update pods there"
    )
