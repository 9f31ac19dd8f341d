"""What the API server can answer instead of doing what it was asked.

BallastError
└── KubeError
    ├── NotConnected   no usable address or credentials
    ├── Unavailable    no answer, too busy, or broken; another try may help
    ├── Conflict       the object is not as it was read
    │   └── AlreadyExists
    ├── NotFound
    ├── Gone           a continue token or resource version is too old
    ├── Forbidden      a right is missing
    ├── Denied         admission refuses the object
    ├── Invalid        the server does not accept the object or the patch
    │   └── TooLarge   the object is as long as etcd takes
    └── AnswerTooLong  more than is read at a time: fewer objects are to be asked for
"""

from __future__ import annotations

import re
from typing import Any

from ballast.errors import BallastError


class KubeError(BallastError):
    """`action` (as in `patch pods analytics/exec-1`) failed with HTTP `status` (0: no answer at all)."""

    of_server = False
    """It says something of the server or the way to it, and not of this one object: nothing else would go better."""

    def __init__(self, action: str, message: str, *, status: int = 0, body: dict[str, Any] | None = None) -> None:
        super().__init__(action, message)
        self.action = action
        self.message = message
        self.status = status
        self.body = body or {}
        """The server's Status object, where it sent one."""

    def __str__(self) -> str:
        return f"{self.action}: {self.message}"

    @property
    def kind(self) -> str:
        """Of failure: without names of objects, or words of the server."""
        asked = " ".join(self.action.split(" ")[:2])
        return f"{asked}: HTTP {self.status}" if self.status else f"{asked}: no answer"

    @property
    def causes(self) -> tuple[dict[str, Any], ...]:
        return tuple(cause for cause in _details(self.body).get("causes") or () if isinstance(cause, dict))


class NotConnected(KubeError):  # noqa: N818 -- says what is wrong, reads well when raised
    of_server = True


class Unavailable(KubeError):  # noqa: N818 -- says what is wrong, reads well when raised
    of_server = True
    retry_after_seconds: float | None = None


class Conflict(KubeError):  # noqa: N818 -- says what is wrong, reads well when raised
    pass


class AlreadyExists(Conflict):
    pass


class NotFound(KubeError):  # noqa: N818 -- says what is wrong, reads well when raised
    @property
    def of_kind(self) -> bool:
        """The server does not know the kind: where it knows it, its answer names the object."""
        return "name" not in _details(self.body)


class Gone(KubeError):  # noqa: N818 -- says what is wrong, reads well when raised
    of_server = True


class Forbidden(KubeError):  # noqa: N818 -- says what is wrong, reads well when raised
    def __str__(self) -> str:
        return f"not allowed to {self.action}: {self.message} (grant the operator's ClusterRole this right)"

    @property
    def of_rights(self) -> bool:
        """The API server's own authorization says so, which does not see what is to be written."""
        return _OF_RIGHTS in self.message


class Denied(KubeError):  # noqa: N818 -- says what is wrong, reads well when raised
    """A webhook or an admission policy refused the object, or a webhook or a quota could not be asked.

    This is about one object, whatever the status is: a webhook chooses that of its refusal, and a webhook that can't be
    called is a 500.
    """


class Invalid(KubeError):  # noqa: N818 -- says what is wrong, reads well when raised
    pass


class TooLarge(Invalid):
    """The object would be longer than etcd takes, whatever is changed in it."""


class AnswerTooLong(KubeError):  # noqa: N818 -- says what is wrong, reads well when raised
    """The answer has more bytes than the caller takes at a time."""


def _details(body: dict[str, Any]) -> dict[str, Any]:
    """Empty where a gateway on the way has answered with its own JSON."""
    details = body.get("details")
    return details if isinstance(details, dict) else {}


def error_of(action: str, status: int, body: dict[str, Any]) -> KubeError:
    """The error that an answer with this HTTP status and Status object stands for."""
    message = str(body.get("message") or f"HTTP {status}")
    kind = _BY_STATUS.get(status, Unavailable if status >= 500 else Invalid)
    if _TOO_LARGE in message:
        kind = TooLarge
    elif any(words.search(message) for words in _OF_ADMISSION):
        kind = Denied
    elif status == 403 and message.endswith(_NOT_READY):
        kind = Unavailable
    if status == 409 and body.get("reason") == "AlreadyExists":
        kind = AlreadyExists
    return kind(action, message, status=status, body=body)


_TOO_LARGE = "etcdserver: request is too large"
"""Comes with status 500, and is about the one object: its owner may have made it as long as etcd takes."""
_NOT_READY = "is forbidden: not yet ready to handle request"
"""Of admission after an API server restart: a moment later it is ready."""
_OF_RIGHTS = ' is forbidden: User "'
_OF_ADMISSION = (
    re.compile(r"^admission webhook \S+ denied the request"),
    re.compile(r'^\S+ "[^"]*" is forbidden: ValidatingAdmissionPolicy \''),
    re.compile(r"^policy '[^']*' with binding '[^']*' denied request"),  # of a MutatingAdmissionPolicy
    re.compile(r"^Internal error occurred: (failed calling webhook|resource quota evaluation timed out)"),
)
_BY_STATUS: dict[int, type[KubeError]] = {
    401: NotConnected,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: Unavailable,
}
