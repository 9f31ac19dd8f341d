"""What ServiceAccounts asked of the API server, from its audit log: above all, what it forbade them."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

POLICY = Path(__file__).parent / "manifests" / "audit-policy.yaml"
FORBIDDEN = 403
_CHUNK_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Request:
    """One answered request; `resource` includes a subresource, as in `pods/eviction`."""

    user: str
    verb: str
    resource: str
    namespace: str
    name: str
    status: int
    uri: str
    """With the query: what a list or a watch asked for."""
    at: str
    """When it came, as the API server writes times."""
    body: Any = None
    """What was sent: of patches of pods, evictions, and all that is written of moves."""
    answer: Any = None
    message: str = ""
    """Why it was refused."""
    """The object as it was afterwards: of moves."""


def audit_arguments(log: Path) -> list[str]:
    """The API server's arguments for writing `log`."""
    return [f"--audit-policy-file={POLICY}", f"--audit-log-path={log}", "--audit-log-mode=blocking"]


def requests_in(log: Path, *, since: int = 0) -> Iterator[Request]:
    """All requests so far, the earliest first; a line that is being written is left for the next time.

    `since`: an earlier `end_of` the log.
    """
    if log.exists():
        with log.open("rb") as file:
            file.seek(since)
            *lines, _ = file.read().split(b"\n")
        yield from (_request(json.loads(line)) for line in lines)


def end_of(log: Path) -> int:
    """Where its last whole line ends, in bytes."""
    if not log.exists():
        return 0
    with log.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        while end > 0:
            start = max(0, end - _CHUNK_BYTES)
            file.seek(start)
            found = file.read(end - start).rfind(b"\n")
            if found >= 0:
                return start + found + 1
            end = start
    return 0


def _request(event: dict[str, Any]) -> Request:
    target = event.get("objectRef", {})
    parts = [target.get("resource", event["requestURI"]), target.get("subresource")]
    return Request(
        user=event["user"]["username"],
        verb=event["verb"],
        resource="/".join(part for part in parts if part),
        namespace=target.get("namespace", ""),
        name=target.get("name", ""),
        status=event.get("responseStatus", {}).get("code", 0),
        uri=event["requestURI"],
        at=event["requestReceivedTimestamp"],
        message=event.get("responseStatus", {}).get("message", ""),
        body=event.get("requestObject"),
        answer=event.get("responseObject"),
    )
