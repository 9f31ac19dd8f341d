"""One pool at one moment with all that `plan()` needs, and the file that keeps it."""

from __future__ import annotations

import json
import sys
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
STANDARD_INPUT = Path("-")

_KIND = "BallastSnapshot"
_WORDS = {
    "missing": "this field is missing",
    "missing_argument": "this field is missing",
    "extra_forbidden": "no such field",
    "unexpected_keyword_argument": "no such field",
    "string_type": "must be text",
    "int_parsing": "must be a whole number",
    "float_parsing": "must be a number",
    "dataclass_type": "must be a mapping",
    "bool_parsing": "must be true or false",
}
"""By the library's names for what is wrong; it says the others well enough."""
_REMEDY = "write a new file with `kubectl ballast snapshot --output-file FILE`"

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
        raise UnusableSnapshotError(_told(path, error)) from error
    for position, budget in enumerate(situation.policy.moves.budgets):
        at = f"policy.moves.budgets.{position}"
        wrong = schedule_defect(budget.schedule, budget.time_zone, at=at, time_zone_field="time_zone")
        if wrong is not None:
            raise UnusableSnapshotError(f"{path}: {wrong}")
    return situation


def _told(path: Path, error: ValidationError) -> str:
    """One line a field, and what helps."""
    problems = [
        f"{'.'.join(str(part) for part in each['loc'])}: {_WORDS.get(each['type'], each['msg'])}"
        for each in error.errors(include_url=False)
    ]
    if len(problems) == 1:
        return f"{path}: {problems[0]}: {_REMEDY}"
    return "\n".join([f"{path} can't be used: {_REMEDY}", *problems])


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
        document = _parsed(sys.stdin.read() if path == STANDARD_INPUT else path.read_text(encoding="utf-8"))
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
