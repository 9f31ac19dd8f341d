"""An API server in memory, as far as moves need it: versions, uids, evictions, patches. Objects are never changed in
place, so that what was read earlier stays as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

from ballast.kube import names
from ballast.kube.errors import Conflict, Invalid, NotFound, Unavailable
from ballast.kube.kinds import EXECUTOR_MOVE, POD, Kind
from tests.unit.kube.builders import NOMINATED_BY_US

JSON = dict[str, Any]
T = TypeVar("T")
PINNED_BY_US = {
    "manager": names.FIELD_MANAGER,
    "operation": "Update",
    "fieldsV1": {
        "f:spec": {"f:affinity": {"f:nodeAffinity": {"f:requiredDuringSchedulingIgnoredDuringExecution": {}}}}
    },
}


class Meet(Protocol):
    """Lets a request through, or what happens in its place."""

    def __call__(self, words: str, request: Callable[[], T]) -> T: ...


class Ended(BaseException):
    """The process that asked leads no more, or is no more: it never learns what became of its request."""


@dataclass(frozen=True)
class Stored:
    """Everything that is kept; pods and moves by name."""

    pods: Mapping[str, JSON] = field(default_factory=dict)
    moves: Mapping[str, JSON] = field(default_factory=dict)


@dataclass
class ApiServer:
    """`checked`: called after every change with what was there before, and what is there now."""

    checked: Callable[[Stored, Stored], None]
    stored: Stored = field(default_factory=Stored)
    before_last: Stored = field(default_factory=Stored)
    """What a watch that lags behind still shows."""
    blocked: bool = False
    """A disruption budget allows no eviction."""
    version: int = 100
    evicted: list[str] = field(default_factory=list)
    """Uids, in order."""

    def put_pod(self, name: str, pod: JSON | None) -> None:
        self._become(replace(self.stored, pods=_with(self.stored.pods, name, self._next(pod))))

    def put_move(self, name: str, move: JSON) -> JSON:
        fresh = self._next(move)
        assert fresh is not None
        self._become(replace(self.stored, moves=_with(self.stored.moves, name, fresh)))
        return fresh

    def _next(self, found: JSON | None) -> JSON | None:
        if found is None:
            return None
        self.version += 1
        return {**found, "metadata": {**found["metadata"], "resourceVersion": str(self.version)}}

    def _become(self, after: Stored) -> None:
        self.before_last, self.stored = self.stored, after
        self.checked(self.before_last, after)

    def write_status(self, name: str, patch: Mapping[str, Any]) -> JSON:
        move = self.stored.moves.get(name)
        if move is None:
            raise NotFound("patch", name)
        if patch["metadata"]["resourceVersion"] != move["metadata"]["resourceVersion"]:
            raise Conflict("patch", "the object has been modified")
        return self.put_move(name, {**move, "status": _merged(move.get("status") or {}, patch["status"])})

    def patch_pod(self, name: str, operations: Sequence[JSON], *, status: bool) -> JSON:
        pod = self.stored.pods.get(name)
        if pod is None:
            raise NotFound("patch", name)
        changed = pod
        for each in operations:
            changed = _changed(changed, each)
        manager = NOMINATED_BY_US if status else PINNED_BY_US
        if status or "affinity" in changed["spec"]:
            managed = [*changed["metadata"].get("managedFields", ()), manager]
            changed = {**changed, "metadata": {**changed["metadata"], "managedFields": managed}}
        self.put_pod(name, changed)
        return dict(self.stored.pods[name])

    def evict(self, name: str, uid: str, *, deadline: str) -> None:
        pod = self._precise(name, {"uid": uid})
        if self.blocked:
            raise Unavailable("evict", "Cannot evict pod as it would violate the pod's disruption budget.", status=429)
        if "deletionTimestamp" in pod["metadata"]:
            return
        self.evicted.append(uid)
        self.put_pod(name, {**pod, "metadata": {**pod["metadata"], "deletionTimestamp": deadline}})

    def delete_pod(self, name: str, preconditions: Mapping[str, str]) -> None:
        self._precise(name, preconditions)
        self.put_pod(name, None)

    def _precise(self, name: str, preconditions: Mapping[str, str]) -> JSON:
        pod = self.stored.pods.get(name)
        if pod is None:
            raise NotFound("delete", name)
        if any(pod["metadata"][field] != value for field, value in preconditions.items()):
            raise Conflict("delete", "Precondition failed: UID" if "uid" in preconditions else "Precondition failed")
        return pod


@dataclass
class Connection:
    """In place of a Client: what one process asks. `meet` decides what happens around each request."""

    server: ApiServer
    meet: Meet
    deadline: Callable[[], str]
    """When a pod that is evicted now has to be gone."""
    connections: int = 1

    def get(self, kind: Kind, name: str, *, namespace: str | None = None) -> JSON:
        del kind, namespace
        return self.meet("get pod", lambda: self._pod(name))

    def _pod(self, name: str) -> JSON:
        pod = self.server.stored.pods.get(name)
        if pod is None:
            raise NotFound("get", name)
        return pod

    def pods(self) -> list[JSON]:
        return self.meet("list pods", lambda: list(self.server.stored.pods.values()))

    def patch(self, kind: Kind, name: str, patch: Any, **options: Any) -> JSON:
        status = options.get("subresource") == "status"
        if kind is EXECUTOR_MOVE:
            return self.meet(f"write {name}", lambda: self.server.write_status(name, patch))
        assert kind is POD, kind
        return self.meet(
            f"{'nominate' if status else 'release'} {name}",
            lambda: self.server.patch_pod(name, patch, status=status),
        )

    def act(self, kind: Kind, name: str, *, subresource: str, body: Mapping[str, Any], namespace: str) -> JSON:
        del namespace
        assert (kind, subresource) == (POD, "eviction")
        uid = body["deleteOptions"]["preconditions"]["uid"]
        self.meet(f"evict {name}", lambda: self.server.evict(name, uid, deadline=self.deadline()))
        return {}

    def delete(self, kind: Kind, name: str, *, namespace: str | None = None, preconditions: Mapping[str, str]) -> None:
        del namespace
        assert kind is POD, kind
        self.meet(f"delete {name}", lambda: self.server.delete_pod(name, preconditions))


def _with(items: Mapping[str, JSON], name: str, item: JSON | None) -> dict[str, JSON]:
    kept = {key: value for key, value in items.items() if key != name}
    return kept if item is None else {**kept, name: item}


def _merged(old: Mapping[str, Any], changes: Mapping[str, Any]) -> JSON:
    """RFC 7386."""
    found = dict(old)
    for key, value in changes.items():
        if value is None:
            found.pop(key, None)
        elif isinstance(value, Mapping):
            before = found.get(key)
            found[key] = _merged(before if isinstance(before, Mapping) else {}, value)
        else:
            found[key] = value
    return found


def _changed(found: Any, operation: JSON) -> Any:
    """RFC 6902, as far as it is used."""
    return _at(found, operation["path"].strip("/").split("/"), operation)


def _at(found: Any, path: Sequence[str], operation: JSON) -> Any:
    first, *rest = path
    if isinstance(found, list):
        index = int(first)
        assert operation["op"] == "remove"
        assert not rest
        return [*found[:index], *found[index + 1 :]]
    if rest:
        if first not in found:
            raise Invalid("patch", "the path does not exist", status=422)
        return {**found, first: _at(found[first], rest, operation)}
    match operation["op"]:
        case "test":
            if found.get(first) != operation["value"]:
                raise Invalid("patch", "the server rejected our request due to an error in our request", status=422)
            return found
        case "add":
            return {**found, first: operation["value"]}
        case "remove":
            return {key: value for key, value in found.items() if key != first}
    raise AssertionError(operation)
