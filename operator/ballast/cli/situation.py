"""One pool at one moment with all that `plan()` needs, and the file that keeps it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import yaml
from pydantic import ConfigDict, TypeAdapter, ValidationError

from ballast.api.meta import in_plain_words
from ballast.api.policy_placement import PlacementStrategy
from ballast.api.policy_shedding import SheddingStrategy
from ballast.errors import BallastError, InvalidField, file_name
from ballast.files import documents
from ballast.model import Memory, Phase, Plan, Policy, Snapshot
from ballast.model.from_api import schedule_defect
from ballast.planner.plan import plan

VERSION = 1

_KIND = "BallastSnapshot"
_LATEST = 220_000_000_000
"""No calendar has the times that passes reckon from a much later one."""
_REMEDY = "write a new file with `kubectl ballast snapshot --output-file FILE`"

_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


@dataclass(frozen=True, slots=True)
class Situation:
    """Also the content of a snapshot file."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    policy: Policy
    memory: Memory
    snapshot: Snapshot

    @property
    def now(self) -> float:
        return self.snapshot.taken_at

    def plan(self) -> Plan:
        """What a pass would decide now."""
        return plan(self.snapshot, self.policy, self.memory, self.now)[0]


class UnusableSnapshotError(BallastError):
    """A snapshot of another version, or one with wrong fields."""


def load(path: Path, *, option: str = "--filename") -> Situation:
    """Read a snapshot file (YAML or JSON).

    Raises InvalidField for a file that is no snapshot, UnusableSnapshotError with the fields that are wrong in it.
    """
    return situation_in(documents(path, option=option, remedy=_REMEDY), path, option=option)


def situation_in(found: Sequence[Any], path: Path, *, option: str = "--filename") -> Situation:
    """As `load`, of the file's documents."""
    document = _document(found, path, option)
    try:
        situation = TypeAdapter(Situation).validate_python(document)
    except ValidationError as error:
        raise UnusableSnapshotError(_told(path, [*_worded(error)])) from error
    for position, budget in enumerate(situation.policy.moves.budgets):
        at = f"policy.moves.budgets.{position}"
        wrong = schedule_defect(budget.schedule, budget.time_zone, at=at, time_zone_field="time_zone")
        if wrong is not None:
            raise UnusableSnapshotError(f"{file_name(path)}: {wrong}")
    # Also numbers that are written as text.
    numbers = TypeAdapter(Situation).dump_python(situation, mode="json", exclude_defaults=True)
    if problems := [*_infinite(numbers, ""), *_inconsistent(situation)]:
        raise UnusableSnapshotError(_told(path, problems))
    return situation


def _infinite(document: Any, at: str) -> Iterator[str]:
    """No measurement or setting is without bounds, and no pass could compute with it."""
    if isinstance(document, float) and not math.isfinite(document):
        yield f"{at}: write a finite number"
    items = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in items:
        yield from _infinite(value, f"{at}.{key}".removeprefix("."))


def _inconsistent(situation: Situation) -> Iterator[str]:
    """What a pass takes for granted of any pool that the operator reads."""
    policy, snapshot = situation.policy, situation.snapshot
    if not 0 <= snapshot.taken_at < _LATEST:
        yield "snapshot.taken_at: write the seconds since 1970 of a year before 9000"
    levels = len(policy.levels.ordered)
    if levels == 0:
        yield "policy.levels.ordered: write at least 1 item"
    for section, strategy, words in (
        ("shedding", policy.shedding.strategy, SheddingStrategy),
        ("placement", policy.placement.strategy, PlacementStrategy),
    ):
        if strategy not in set(words):
            yield f"policy.{section}.strategy: write {', '.join(words)}"
    for position, node in enumerate(snapshot.nodes):
        if len(node.location) != levels:
            yield f"snapshot.nodes.{position}.location: write {levels} items, one for each of policy.levels"
    for position, executor in enumerate(snapshot.executors):
        if executor.phase is Phase.RUNNING and executor.node is None:
            yield f"snapshot.executors.{position}.node: set this field, because the executor runs"


def _worded(error: ValidationError) -> Iterator[str]:
    for each in error.errors(include_url=False):
        yield f"{'.'.join(str(part) for part in each['loc'])}: {in_plain_words(each)}"


def _told(path: Path, problems: Sequence[str]) -> str:
    """One line a field, and what helps."""
    if len(problems) == 1:
        return f"{file_name(path)}: {problems[0]}: {_REMEDY}"
    return "\n".join([f"{file_name(path)} can't be used: {_REMEDY}", *problems])


def dump(situation: Situation, *, as_json: bool = False) -> str:
    """The file's text. The policy is written whole, of the rest what is as usual is left out.

    JSON is written and read some twenty times faster, which tells with thousands of executors.
    """
    content = TypeAdapter(Situation).dump_python(situation, mode="json", exclude_defaults=True)
    policy = TypeAdapter(Policy).dump_python(situation.policy, mode="json")
    document = {"kind": _KIND, "version": VERSION, **content, "policy": policy}
    if as_json:
        return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    text: str = yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
    return text


def _document(found: Sequence[Any], path: Path, option: str) -> dict[str, Any]:
    """The content without the two fields that say what it is."""
    fields: dict[str, Any] = found[0] if found and isinstance(found[0], dict) else {}
    kind = fields.pop("kind", None)
    if kind != _KIND:
        what = f"a {kind}, not a {_KIND}" if isinstance(kind, str) else f"not a {_KIND}"
        raise InvalidField(option, str(path), f"this is {what}; {_REMEDY}")
    version = fields.pop("version", None)
    if version != VERSION:
        raise UnusableSnapshotError(
            f"{file_name(path)}: version: {version!r}: this program reads version {VERSION}: {_REMEDY}"
        )
    return fields
