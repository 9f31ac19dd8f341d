"""One pool at one moment with all that `plan()` needs, and the file that keeps it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import yaml
from pydantic import ConfigDict, TypeAdapter, ValidationError

from ballast.errors import BallastError
from ballast.model import Memory, Plan, Policy, Snapshot
from ballast.planner.defects import schedule_defect
from ballast.planner.plan import plan

VERSION = 1

_KIND = "BallastSnapshot"
_REMEDY = "write a new file with `kubectl ballast snapshot -o FILE`"

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
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
    """A file that is no snapshot, or one of another version."""


def load(path: Path) -> Situation:
    """Read a snapshot file (YAML or JSON). Raises UnusableSnapshotError with the field and what is wrong."""
    document = _document(path)
    try:
        situation = TypeAdapter(Situation).validate_python(document)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise UnusableSnapshotError(f"{path}: {field}: {first['msg']}: {_REMEDY}") from error
    for position, budget in enumerate(situation.policy.moves.budgets):
        at = f"policy.moves.budgets.{position}"
        wrong = schedule_defect(budget.schedule, budget.time_zone, at=at, time_zone_field="time_zone")
        if wrong is not None:
            raise UnusableSnapshotError(f"{path}: {wrong}")
    return situation


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


def _document(path: Path) -> dict[str, Any]:
    """The content without the two fields that say what it is."""
    try:
        document = _parsed(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UnusableSnapshotError(f"{path}: {error.strerror}") from error
    except (yaml.YAMLError, ValueError) as error:
        words = " ".join(str(error).split())
        raise UnusableSnapshotError(f"{path}: not readable as YAML or JSON: {words}: {_REMEDY}") from error
    fields: dict[str, Any] = document if isinstance(document, dict) else {}
    kind = fields.pop("kind", None)
    if kind != _KIND:
        raise UnusableSnapshotError(f"{path}: kind: {kind!r}: this is no {_KIND}: {_REMEDY}")
    version = fields.pop("version", None)
    if version != VERSION:
        raise UnusableSnapshotError(f"{path}: version: {version!r}: this program reads version {VERSION}: {_REMEDY}")
    return fields


def _parsed(text: str) -> Any:
    return json.loads(text) if text.startswith("{") else yaml.load(text, Loader=_Loader)  # noqa: S506 -- a safe loader
