"""The list of everything a testbed started, appended before or right after each start, one JSON line each."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.testbed.procfs import ProcessId


@dataclass(frozen=True, slots=True)
class Part:
    """A process of the testbed."""

    name: str
    process: ProcessId
    log: Path


@dataclass(frozen=True, slots=True)
class Manifest:
    """Read again at each question: another process may have added to it, or `down` removed it."""

    path: Path

    def record_owner(self, owner: ProcessId) -> None:
        self._append({"kind": "owner", "pid": owner.pid, "startTicks": owner.start_ticks})

    def record_detached(self) -> None:
        """From now on the testbed stays although its owner ends."""
        self._append({"kind": "detached"})

    def record_part(self, part: Part) -> None:
        process = {"pid": part.process.pid, "startTicks": part.process.start_ticks}
        self._append({"kind": "process", "name": part.name, "log": str(part.log), **process})

    def record_details(self, details: dict[str, Any]) -> None:
        """What a later process needs to use the testbed: addresses, nodes, files."""
        self._append({"kind": "details", "details": details})

    def parts(self) -> list[Part]:
        return [
            Part(entry["name"], ProcessId(entry["pid"], entry["startTicks"]), Path(entry["log"]))
            for entry in self._entries("process")
        ]

    def details(self) -> dict[str, Any]:
        """Later details win over earlier ones."""
        merged: dict[str, Any] = {}
        for entry in self._entries("details"):
            merged |= entry["details"]
        return merged

    def is_abandoned(self) -> bool:
        """Whether whoever started it is gone without having meant to leave it behind."""
        return not self._entries("detached") and not any(owner.is_alive() for owner in self.owners())

    def owners(self) -> list[ProcessId]:
        """Who started it, alive or not."""
        return [ProcessId(entry["pid"], entry["startTicks"]) for entry in self._entries("owner")]

    def _append(self, entry: dict[str, Any]) -> None:
        with self.path.open("a") as handle:
            handle.write(json.dumps(entry) + "\n")

    def _entries(self, kind: str) -> list[dict[str, Any]]:
        if not self.path.exists():
            return []
        entries = [_parse(line) for line in self.path.read_text().splitlines()]
        return [entry for entry in entries if entry.get("kind") == kind]


def _parse(line: str) -> dict[str, Any]:
    """Nothing, for a line that a crash cut short."""
    try:
        entry: dict[str, Any] = json.loads(line)
    except json.JSONDecodeError:
        return {}
    return entry
