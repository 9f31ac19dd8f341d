"""Leader election: of several replicas, the holder of a Lease (coordination.k8s.io/v1) acts.

As in client-go's leader election: a replica never compares the lease's own times with its clock (clocks differ),
but how long ago, by its own clock, it saw the lease change. A lease unchanged for its duration may be taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from ballast.kube.client import Client, Limits
from ballast.kube.document import JSON, micro_text, seconds
from ballast.kube.errors import Conflict, KubeError, NotFound
from ballast.kube.kinds import LEASE
from ballast.kube.objects import Query, read_list


@dataclass(frozen=True, slots=True)
class LeaseSettings:
    namespace: str
    name: str
    identity: str
    """Of this replica; unique."""
    duration_seconds: float = 15.0
    """How long others wait for a leader that is silent."""
    renew_deadline_seconds: float = 10.0
    """A leader that could not renew for so long stops acting, well before others may take over."""
    renew_seconds: float = 5.0
    """How often to look while all is well: to renew, or to see whether the lease is free."""
    retry_seconds: float = 2.0
    """How soon to look again after a failure."""

    @classmethod
    def of_duration(cls, seconds: float, *, namespace: str, name: str, identity: str) -> LeaseSettings:
        """With client-go's proportions (15, 10 and 2 s); two renewals may fail before the deadline."""
        return cls(
            namespace,
            name,
            identity,
            duration_seconds=seconds,
            renew_deadline_seconds=seconds * 2 / 3,
            renew_seconds=seconds / 3,
            retry_seconds=seconds * 2 / 15,
        )


ELECTION_LIMITS = Limits(connections=1, connect_seconds=2.0, read_seconds=3.0, answer_seconds=3.0, attempts=1)
"""For a client of the election's own: an answer that comes late is worth nothing."""


_LONGEST_SECONDS = 60.0
"""That the chart's lease.durationSeconds can be."""
_TRANSITIONS = 1 << 31


class Step(Enum):
    CREATE = "create"
    TAKE = "take"
    RENEW = "renew"
    WAIT = "wait"


@dataclass(frozen=True, slots=True)
class ObservedLease:
    """The lease as last seen to change, and when that was by this replica's own monotonic clock."""

    fingerprint: tuple[str, str, int] | None = None
    at: float = 0.0

    def after(self, lease: JSON | None, now: float) -> ObservedLease:
        found = None if lease is None else _fingerprint(lease)
        return self if found == self.fingerprint else ObservedLease(found, now)


def decide(lease: JSON | None, observed: ObservedLease, settings: LeaseSettings, now: float) -> Step:
    """What to do about the lease as it is, of which `observed` already knows. `now` on the clock of `observed`."""
    if lease is None:
        return Step.CREATE
    spec = lease.get("spec") or {}
    holder = spec.get("holderIdentity") or ""
    if holder == settings.identity:
        return Step.RENEW
    duration = float(spec.get("leaseDurationSeconds") or settings.duration_seconds)
    # A user may have written one of years, for a holder that does not exist: no replica would ever lead.
    if not holder or now - observed.at >= min(duration, max(_LONGEST_SECONDS, settings.duration_seconds)):
        return Step.TAKE
    return Step.WAIT


class Election:
    """One replica's part in the election.

    Call `tick` every `retry_seconds`, and ask `leading` before every action. `clock`: seconds since the epoch,
    written into the Lease; `monotonic`: decides. Only `leading` is thread-safe.
    """

    def __init__(
        self, client: Client, settings: LeaseSettings, *, clock: Callable[[], float], monotonic: Callable[[], float]
    ) -> None:
        self._client, self._settings = client, settings
        self._clock, self._monotonic = clock, monotonic
        self._observed = ObservedLease()
        self._held_until: float | None = None
        self._written: JSON | None = None
        """The lease as this replica wrote it last. While no other replica writes it, it need not be read."""
        self.last_error: KubeError | None = None
        """Why the last tick could not reach a decision."""

    @property
    def leading(self) -> bool:
        """False from the moment at which the lease could not be renewed in time, whether or not another one leads."""
        held_until = self._held_until
        return held_until is not None and self._monotonic() < held_until

    def tick(self) -> bool:
        """Take or renew the lease if that is called for; returns whether this replica leads now."""
        self.last_error = None
        try:
            self._tick()
        except Conflict:
            # Another replica wrote it first: the next tick reads which.
            pass
        except KubeError as error:
            self.last_error = error
        return self.leading

    def release(self) -> None:
        """Give the lease up at a clean stop, so that another replica takes over at once."""
        was_leading, self._held_until = self._held_until is not None, None
        if not was_leading:
            return
        try:
            lease = self._read()
            if lease is not None and (lease.get("spec") or {}).get("holderIdentity") == self._settings.identity:
                spec = {**lease["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}
                self._write({**lease, "spec": spec})
        except KubeError as error:
            self.last_error = error

    def _tick(self) -> None:
        started = self._monotonic()
        if self.leading and self._written is not None:
            try:
                self._keep(self._write(self._claimed(self._written, Step.RENEW)), since=started)
            except (Conflict, NotFound):
                # Another replica wrote it, or an answer of ours was lost: it has to be read.
                self._written = None
            else:
                return
        lease = self._read()
        self._observed = self._observed.after(lease, self._monotonic())
        step = decide(lease, self._observed, self._settings, self._monotonic())
        if step is Step.WAIT:
            self._held_until = None
            return
        self._keep(self._create() if lease is None else self._write(self._claimed(lease, step)), since=started)

    def _keep(self, written: JSON, *, since: float) -> None:
        """Counted from before the request: the server may have taken it then."""
        self._held_until = since + self._settings.renew_deadline_seconds
        self._observed = ObservedLease(_fingerprint(written), self._monotonic())
        self._written = written

    def _read(self) -> JSON | None:
        try:
            return self._client.get(LEASE, self._settings.name, namespace=self._settings.namespace)
        except NotFound:
            return None

    def _create(self) -> JSON:
        metadata = {"name": self._settings.name, "namespace": self._settings.namespace}
        spec = {**self._spec(), "acquireTime": micro_text(self._clock()), "leaseTransitions": 0}
        body = {"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": metadata, "spec": spec}
        return self._client.create(LEASE, body, namespace=self._settings.namespace)

    def _claimed(self, lease: JSON, step: Step) -> JSON:
        spec = {**(lease.get("spec") or {}), **self._spec()}
        if step is Step.TAKE:
            spec["acquireTime"] = spec["renewTime"]
            # What the API server takes, whatever a user has written.
            spec["leaseTransitions"] = (int(spec.get("leaseTransitions") or 0) + 1) % _TRANSITIONS
        return {**lease, "spec": spec}

    def _spec(self) -> JSON:
        return {
            "holderIdentity": self._settings.identity,
            "leaseDurationSeconds": max(1, round(self._settings.duration_seconds)),
            "renewTime": micro_text(self._clock()),
        }

    def _write(self, lease: JSON) -> JSON:
        """Guarded by the resource version that the lease carries."""
        return self._client.replace(LEASE, self._settings.name, lease, namespace=self._settings.namespace)


def lease_is_stale(client: Client, *, namespace: str, name: str, now: float, grace_seconds: float) -> bool:
    """Whether no replica has renewed the leader's lease for its duration and a grace; also when there is none.

    By the lease's own times: the caller runs too briefly to see it change. The grace covers how clocks differ.
    """
    try:
        lease = client.get(LEASE, name, namespace=namespace)
    except NotFound:
        return True
    return not _held(lease, now=now, grace_seconds=grace_seconds)


def somebody_leads(client: Client, *, namespace: str, name_part: str, now: float, grace_seconds: float) -> bool:
    """Whether any lease of the namespace with `name_part` in its name is held, by its own times as above."""
    found = read_list(client, Query(LEASE, namespace=namespace), lambda lease: lease).items
    ours = [lease for lease in found if name_part in lease["metadata"]["name"]]
    return any(_held(lease, now=now, grace_seconds=grace_seconds) for lease in ours)


def _held(lease: JSON, *, now: float, grace_seconds: float) -> bool:
    spec = lease.get("spec") or {}
    renewed_at = seconds(spec.get("renewTime"))
    if not spec.get("holderIdentity") or renewed_at is None:
        return False
    return now - renewed_at <= float(spec.get("leaseDurationSeconds") or 0) + grace_seconds


def _fingerprint(lease: JSON) -> tuple[str, str, int]:
    spec = lease.get("spec") or {}
    return (
        spec.get("holderIdentity") or "",
        spec.get("renewTime") or "",
        int(spec.get("leaseTransitions") or 0),
    )
