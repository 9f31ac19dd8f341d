"""What processes use, and what was asked of the API server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psutil

from tests.testbed.audit import Request
from tests.testbed.testbed import Testbed

WRITES = frozenset({"create", "update", "patch", "delete"})
_SELECTORS = frozenset({"fieldSelector", "labelSelector", "continue"})


@dataclass(frozen=True, slots=True)
class Meter:
    """CPU of one process."""

    process_id: int

    @classmethod
    def of_part(cls, testbed: Testbed, name: str) -> Meter:
        """Of a part of the control plane."""
        (found,) = (part.process.pid for part in testbed.instance.manifest.parts() if part.name == name)
        return cls(found)

    def cpu_seconds(self) -> float:
        times = psutil.Process(self.process_id).cpu_times()
        return float(times.user + times.system)

    def resident_bytes(self) -> int:
        return int(psutil.Process(self.process_id).memory_info().rss)

    def peak_bytes(self) -> int:
        """The most that has been resident since the process began."""
        status = Path(f"/proc/{self.process_id}/status").read_text(encoding="ascii", errors="replace")
        (kibibytes,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
        return 1024 * int(kibibytes)


def between(requests: Iterable[Request], since: datetime, until: datetime) -> list[Request]:
    return [each for each in requests if since <= datetime.fromisoformat(each.at) < until]


def by_verb_and_resource(requests: Iterable[Request]) -> Counter[str]:
    return Counter(f"{each.verb} {each.resource}" for each in requests)


def is_full_pod_list(request: Request) -> bool:
    """It asked for all pods of the cluster, as a list or as a watch that begins with them."""
    if request.resource != "pods" or request.namespace:
        return False
    query = parse_qs(urlsplit(request.uri).query)
    if query.keys() & _SELECTORS:
        return False
    return request.verb == "list" or query.get("sendInitialEvents") == ["true"]


def now() -> datetime:
    """The clock of audit logs, which is this machine's."""
    return datetime.now(UTC)
