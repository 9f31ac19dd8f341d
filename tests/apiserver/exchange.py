"""One request to an API server, and its answer."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote

JSON = dict[str, Any]


class Place(NamedTuple):
    """What a path of the API names."""

    plural: str
    namespace: str
    name: str
    subresource: str


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    headers: dict[str, str]
    body: Any
    at: float = field(default_factory=time.monotonic, compare=False)
    """Monotonic seconds."""

    @property
    def route(self) -> str:
        """The path without the query."""
        return self.path.partition("?")[0]

    @cached_property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(self.path.partition("?")[2]))

    @cached_property
    def place(self) -> Place:
        parts = [unquote(part) for part in self.route.strip("/").split("/")]
        rest = parts[2:] if parts[0] == "api" else parts[3:]
        namespace = ""
        if rest[:1] == ["namespaces"] and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        plural, name, subresource = (*rest, "", "", "")[:3]
        return Place(plural, namespace, name, subresource)


@dataclass(frozen=True, slots=True)
class Answer:
    status: int = 200
    body: JSON = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    text: str = ""
    """Sent instead of the body."""
    hang_up: bool = False
    """Close the connection instead of answering."""
    stall: bool = False
    """Keep the connection open and send nothing."""


def failure(status: int, reason: str, message: str, **details: Any) -> Answer:
    """A refusal in the API server's words."""
    body: JSON = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return Answer(status, {**body, "message": message, "reason": reason, "details": details, "code": status})


class Refusal(Exception):  # noqa: N818 -- what the server answers
    def __init__(self, status: int, reason: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.answer = failure(status, reason, message, **details)
