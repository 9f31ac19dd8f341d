"""What an API server keeps: objects with versions, and every change of them in order.

Objects are never changed in place, so what was read earlier stays as it was.
"""

from __future__ import annotations

import base64
import json
import re
import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import jsonpatch
from jsonpointer import JsonPointerException

from ballast.kube.kinds import BALANCING_POLICY, EXECUTOR_MOVE, GATE_SWITCH, SPARK_TOPOLOGY
from tests.apiserver.exchange import Asked, Place, Refusal
from tests.apiserver.lists import Lists

JSON = dict[str, Any]
Key = tuple[str, str, str]
"""Plural, namespace and name."""
_WITH_STATUS = frozenset(
    ("pods", "nodes", "balancingpolicies", "sparktopologies", "executormoves", "gateswitches", "poddisruptionbudgets")
)
_NAMED = {
    each.plural: {"apiVersion": each.api_version, "kind": each.kind}
    for each in (BALANCING_POLICY, SPARK_TOPOLOGY, EXECUTOR_MOVE, GATE_SWITCH)
}
_OURS = frozenset(_NAMED)
_GUARDED_ALWAYS = _OURS | {"leases"}
_REJECTED = "the server rejected our request due to an error in our request"
_GUARDED = "the object has been modified; please apply your changes to the latest version and try again"


@dataclass(frozen=True, slots=True)
class Change:
    version: int
    key: Key
    before: JSON | None
    after: JSON | None

    def event(self, wanted: Callable[[JSON], bool]) -> JSON | None:
        """What a watch of the objects that are `wanted` brings."""
        was, now = (each is not None and wanted(each) for each in (self.before, self.after))
        if now:
            return {"type": "MODIFIED" if was else "ADDED", "object": self.after}
        if not was:
            return None
        gone = self.before or {}
        return {"type": "DELETED", "object": stamped(self.after or gone, self.version)}


@dataclass
class Store:
    version: int = 100
    oldest: int = 0
    """Versions before this one are compacted: what asks for them is answered 410."""
    objects: dict[Key, JSON] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    now: Callable[[], datetime] = field(default_factory=lambda: lambda: datetime.now(UTC))
    checked: Callable[[Change], None] = field(default_factory=lambda: lambda change: None)
    """Called after every change."""
    news: threading.Condition = field(default_factory=threading.Condition)

    # What a test does to the cluster

    def put(self, plural: str, *objects: JSON) -> None:
        """Create or replace, as they are; each gets a version, and a uid if it has none."""
        for each in objects:
            metadata = {"uid": f"uid-{each['metadata']['name']}", **each["metadata"]}
            key = (plural, metadata.get("namespace", ""), metadata["name"])
            self.keep(key, {**_NAMED.get(plural, {}), **each, "metadata": metadata})

    def remove(self, plural: str, name: str, namespace: str = "") -> None:
        if (plural, namespace, name) in self.objects:
            self.keep((plural, namespace, name), None)

    def one(self, plural: str, name: str, namespace: str = "") -> JSON:
        """Empty where there is none."""
        return self.objects.get((plural, namespace, name)) or {}

    def status(self, plural: str, name: str, namespace: str = "") -> JSON:
        return self.one(plural, name, namespace).get("status") or {}

    def all(self, plural: str) -> list[JSON]:
        """In the order in which they were created."""
        return [each for (kind, _, _), each in list(self.objects.items()) if kind == plural]

    @property
    def lists(self) -> Lists:
        return Lists(self)

    def compact(self) -> None:
        """Forget what was before now."""
        with self.news:
            self.oldest = self.version
            self.news.notify_all()

    def restore(self, changes: int) -> None:
        """Go back before the last changes, as an etcd does from a backup: their versions come again."""
        with self.news:
            undone = self.changes[len(self.changes) - changes :]
            self.objects, self.version = self._before(undone), undone[0].version - 1
            del self.changes[-changes:]

    def past(self, changes: int) -> dict[Key, JSON]:
        """The objects before the last changes: what a watch that is late still shows."""
        with self.news:
            return self._before(self.changes[len(self.changes) - changes :] if changes else [])

    def _before(self, undone: list[Change]) -> dict[Key, JSON]:
        found = dict(self.objects)
        for change in reversed(undone):
            if change.before is None:
                found.pop(change.key, None)
            else:
                found[change.key] = change.before
        return found

    def keep(self, key: Key, found: JSON | None) -> JSON:
        """Write it, whatever is there."""
        with self.news:
            self.version += 1
            before = self.objects.get(key)
            if found is None:
                del self.objects[key]
            else:
                found = self.objects[key] = stamped(found, self.version)
            change = Change(self.version, key, before, found)
            self.changes.append(change)
            self.checked(change)
            self.news.notify_all()
        return found or before or {}

    # What a client asks

    def read(self, place: Place) -> JSON:
        found = self.objects.get(_key(place))
        if found is None:
            raise Refusal(404, "NotFound", f'{place.plural} "{place.name}" not found', name=place.name)
        return found

    def page(self, asked: Asked) -> JSON:
        with self.news:
            return self._page(asked.place, asked.query)

    def _page(self, place: Place, query: Mapping[str, str]) -> JSON:
        version, after = self.version, ("", "")
        if token := query.get("continue"):
            version, *start = json.loads(base64.urlsafe_b64decode(token))
            after = (start[0], start[1])
            if version < self.oldest:
                raise Refusal(410, "Expired", "The provided continue parameter is too old.")
        wanted = selection(place, query)
        found = self._before([change for change in self.changes if change.version > version])
        found = {key: each for key, each in found.items() if key[0] == place.plural and wanted(each)}
        keys = sorted(key[1:] for key in found if key[1:] > after)
        limit = int(query.get("limit") or 0) or len(keys)
        metadata: JSON = {"resourceVersion": str(version)}
        if keys[limit:]:
            position = json.dumps([version, *keys[limit - 1]]).encode()
            metadata["continue"] = base64.urlsafe_b64encode(position).decode()
            if not (query.get("labelSelector") or query.get("fieldSelector")):
                metadata["remainingItemCount"] = len(keys) - limit
        return {"kind": "List", "metadata": metadata, "items": [found[place.plural, *key] for key in keys[:limit]]}

    def create(self, place: Place, body: JSON) -> JSON:
        metadata = {**body["metadata"]}
        name = metadata.get("name") or f"{metadata.get('generateName', '')}{uuid.uuid4().hex[:5]}"
        key = (place.plural, place.namespace, name)
        with self.news:
            if key in self.objects:
                raise Refusal(409, "AlreadyExists", f'{place.plural} "{name}" already exists', name=name)
            created = self.now().strftime("%Y-%m-%dT%H:%M:%SZ")
            metadata |= {"name": name, "uid": str(uuid.uuid4()), "creationTimestamp": created}
            metadata |= {"namespace": place.namespace} if place.namespace else {}
            metadata |= {"generation": 1} if place.plural in _OURS else {}
            fresh = {**body, "metadata": metadata}
            if place.plural in _WITH_STATUS:
                fresh.pop("status", None)
            if place.plural == "pods":
                fresh["status"] = {"phase": "Pending"}
            return self.keep(key, fresh)

    def replace(self, place: Place, body: JSON) -> JSON:
        with self.news:
            if place.plural in _GUARDED_ALWAYS and not body["metadata"].get("resourceVersion"):
                raise Refusal(422, "Invalid", "metadata.resourceVersion: Invalid value: 0: must be specified")
            return self._update(place, self.read(place), body)

    def patch(self, place: Place, patch: Any, manager: str = "") -> JSON:
        with self.news:
            before = self.read(place)
            after = merged(before, patch) if isinstance(patch, dict) else _patched(place, before, patch)
            return self._update(place, before, after, manager)

    def _update(self, place: Place, before: JSON, after: JSON, manager: str = "") -> JSON:
        old, new = before["metadata"], after["metadata"]
        if new.get("resourceVersion", old["resourceVersion"]) != old["resourceVersion"]:
            raise _conflict(place, _GUARDED)
        if new.get("uid", old.get("uid")) != old.get("uid"):
            cause = {"reason": "FieldValueInvalid", "message": "field is immutable", "field": "metadata.uid"}
            raise Refusal(422, "Invalid", f'{place.plural} "{place.name}" is invalid', name=place.name, causes=[cause])
        if place.subresource == "status":
            after = {**before, "status": after.get("status") or {}}
        elif place.plural in _WITH_STATUS:
            after = {key: value for key, value in after.items() if key != "status"}
            after |= {"status": before["status"]} if "status" in before else {}
        fixed = ("uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "generation", "managedFields")
        metadata = {name: value for name, value in after["metadata"].items() if name not in fixed}
        metadata |= {name: old[name] for name in fixed if name in old}
        if "generation" in old and after.get("spec") != before.get("spec"):
            metadata["generation"] += 1
        after = {**after, "metadata": metadata}
        if after == before:
            return before
        if manager:
            metadata["managedFields"] = _managed(before, after, manager, place.subresource, self.now())
        return self.keep(_key(place), after)

    def delete(self, place: Place, options: JSON) -> JSON:
        with self.news:
            found = self.read(place)
            for name, value in (options.get("preconditions") or {}).items():
                if found["metadata"].get(name) != value:
                    of = {"uid": "UID", "resourceVersion": "ResourceVersion"}[name]
                    had = found["metadata"].get(name)
                    words = f"Precondition failed: {of} in precondition: {value}, {of} in object meta: {had}"
                    raise _conflict(place, words)
            key = _key(place)
            grace = options.get("gracePeriodSeconds")
            if not _stays(place.plural, found) or grace == 0:
                return self.keep(key, None)
            if "deletionTimestamp" in found["metadata"]:
                return found
            seconds = found["spec"].get("terminationGracePeriodSeconds", 30) if grace is None else grace
            leaves = (self.now() + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
            metadata = {**found["metadata"], "deletionTimestamp": leaves}
            return self.keep(key, {**found, "metadata": metadata})

    def evict(self, place: Place, body: JSON) -> None:
        with self.news:
            pod = self.read(place)
            self._check_budgets(place, pod)
            self.delete(place, body.get("deleteOptions") or {})

    def _check_budgets(self, place: Place, pod: JSON) -> None:
        if (pod.get("status") or {}).get("phase") != "Running" or "deletionTimestamp" in pod["metadata"]:
            return
        for budget in self.all("poddisruptionbudgets"):
            labels = budget["spec"]["selector"].get("matchLabels") or {}
            if budget["metadata"]["namespace"] != place.namespace or not labels.items() <= _labels(pod).items():
                continue
            if budget["status"]["disruptionsAllowed"] <= 0:
                words = "Cannot evict pod as it would violate the pod's disruption budget."
                why = f"The disruption budget {budget['metadata']['name']} allows no disruption"
                raise Refusal(429, "TooManyRequests", words, causes=[{"reason": "DisruptionBudget", "message": why}])


def _key(place: Place) -> Key:
    return place.plural, place.namespace, place.name


def _conflict(place: Place, words: str) -> Refusal:
    return Refusal(409, "Conflict", f'Operation cannot be fulfilled on {place.plural} "{place.name}": {words}')


def stamped(found: JSON, version: int) -> JSON:
    return {**found, "metadata": {**found["metadata"], "resourceVersion": str(version)}}


def _stays(plural: str, found: JSON) -> bool:
    """Whether it is still there after its deletion: until a kubelet has ended it, or the owners of its finalizers."""
    ended = (found.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    if plural == "pods" and (found.get("spec") or {}).get("nodeName") and not ended:
        return bool(found["spec"].get("terminationGracePeriodSeconds", 30))
    return bool(found["metadata"].get("finalizers"))


def merged(old: Any, changes: Mapping[str, Any]) -> JSON:
    """RFC 7386."""
    found = dict(old) if isinstance(old, dict) else {}
    for key, value in changes.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), value) if isinstance(value, dict) else value
    return found


def _patched(place: Place, found: JSON, operations: list[JSON]) -> JSON:
    """RFC 6902."""
    try:
        return dict(jsonpatch.apply_patch(found, operations))
    except (jsonpatch.JsonPatchException, JsonPointerException) as error:
        raise Refusal(422, "Invalid", _REJECTED, name=place.name) from error


_TERM = re.compile(r"\s*(!?)([^\s=!,()]+)\s*(?:(==|=|!=)\s*([^\s,()]*)|\s(in|notin)\s*\(([^)]*)\))?\s*(?:,|$)")


def selection(place: Place, query: Mapping[str, str]) -> Callable[[JSON], bool]:
    labels = [_term(found) for found in _TERM.finditer(query.get("labelSelector", ""))]
    fields = [_term(found) for found in _TERM.finditer(query.get("fieldSelector", ""))]

    def wanted(found: JSON) -> bool:
        metadata = found["metadata"]
        here = place.namespace in ("", metadata.get("namespace", "")) and place.name in ("", metadata["name"])
        return (
            here
            and all(term(_labels(found).get(key)) for key, term in labels)
            and all(term(_field(found, key)) for key, term in fields)
        )

    return wanted


def _term(found: re.Match[str]) -> tuple[str, Callable[[str | None], bool]]:
    absent, key, sign, value, word, values = found.groups()
    if not sign and not word:
        return key, lambda has: (has is None) == bool(absent)
    among = {each.strip() for each in (values or "").split(",")} if word else {value}
    return key, lambda has: (has in among) == (sign != "!=" and word != "notin")


def _labels(found: JSON) -> dict[str, str]:
    return found["metadata"].get("labels") or {}


def _field(found: Any, path: str) -> str:
    for part in path.split("."):
        found = (found or {}).get(part)
    return str(found or "")


def _managed(before: JSON, after: JSON, manager: str, subresource: str, now: datetime) -> list[JSON]:
    """The managers of fields. Lists count as one field; a manager that changes a field takes it over."""
    changed = _leaves(before) ^ _leaves(after)
    gone = {path for path, _ in changed}
    mine = {path for path, _ in _leaves(after) & changed}
    entries = []
    for entry in after["metadata"].get("managedFields") or ():
        ours = (entry.get("manager"), entry.get("subresource", "")) == (manager, subresource)
        left = {path for path, _ in _leaves(entry.get("fieldsV1") or {})} - {_fields_of(path) for path in gone}
        if ours:
            mine |= {tuple(part.removeprefix("f:") for part in path) for path in left}
        elif left:
            entries.append({**entry, "fieldsV1": _tree(left)})
    if mine:
        entry = {"manager": manager, "operation": "Update", "time": now.strftime("%Y-%m-%dT%H:%M:%SZ")}
        entry |= {"fieldsType": "FieldsV1", "fieldsV1": _tree({_fields_of(path) for path in mine})}
        entries.append(entry | ({"subresource": subresource} if subresource else {}))
    return entries


def _fields_of(path: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"f:{part}" for part in path)


def _leaves(found: JSON, path: tuple[str, ...] = ()) -> set[tuple[tuple[str, ...], str]]:
    leaves = set()
    for key, value in found.items():
        if path == () and key == "metadata":
            value = {each: value[each] for each in ("labels", "annotations") if each in value}  # noqa: PLW2901
        if isinstance(value, dict) and value:
            leaves |= _leaves(value, (*path, key))
        elif value != {} or not key.startswith(("metadata", "f:spec", "f:status")):
            leaves.add(((*path, key), json.dumps(value, sort_keys=True)))
    return leaves


def _tree(paths: set[tuple[str, ...]]) -> JSON:
    tree: JSON = {}
    for path in sorted(paths):
        at = tree
        for part in path:
            at = at.setdefault(part, {})
    return tree
