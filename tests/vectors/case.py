"""Cases recorded from the real classes, as the files hold them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KEPT = Path(__file__).parent / "data"
"""The copy that comes with the sources."""


@dataclass(frozen=True, slots=True)
class Case:
    system: str
    class_name: str
    id: str
    raw: Mapping[str, Any]
    """The whole line; `config`, `given`, `want` and `rounds` mean what the system's README says."""

    @property
    def flags(self) -> frozenset[str]:
        """What the recorder marked the case with: its tags, true top-level flags, and the status it wants."""
        raised = {key for key, value in self.raw.items() if value is True}
        statuses = {want["status"] for want in self.wants if isinstance(want, dict) and "status" in want}
        return frozenset(self.raw.get("tags", ())) | raised | statuses

    @property
    def config(self) -> Mapping[str, Any]:
        return dict(self.raw.get("config", {}))

    @property
    def rounds(self) -> list[dict[str, Any]]:
        """Its `given`/`want` pairs in order; a case without rounds is one round."""
        if "rounds" in self.raw:
            return list(self.raw["rounds"])
        return [{"given": self.raw["given"], "want": self.raw["want"]}]

    @property
    def wants(self) -> Iterator[Any]:
        return (each["want"] for each in self.rounds)


def files(root: Path) -> dict[tuple[str, str], list[Path]]:
    """Every file of cases below `root`, by system and class: `.../system/Class/cases*.jsonl`."""
    found: dict[tuple[str, str], list[Path]] = {}
    for path in sorted(root.resolve().rglob("cases*.jsonl")):
        found.setdefault((path.parent.parent.name, path.parent.name), []).append(path)
    return found


def cases(system: str, class_name: str, root: Path = KEPT) -> list[Case]:
    """Every case of every file of one class below `root`, in the files' order."""
    texts = (path.read_text(encoding="utf-8") for path in files(root).get((system, class_name), []))
    raws = (json.loads(line) for text in texts for line in text.split("\n") if line.strip())
    return [Case(system, class_name, raw["id"], raw) for raw in raws]
