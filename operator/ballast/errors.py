"""The one tree of errors.

BallastError
├── InvalidField      one value that can't be used: which field, what it held, what to write instead
└── InvalidResource   an object with one or more invalid fields
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


_CREDENTIALS = re.compile("//[^/@]*@")
"""In an address."""


def nearest(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The known word that was probably meant. `cutoff`: how alike they must be, from 0 to 1."""
    from difflib import get_close_matches  # noqa: PLC0415 -- only errors need it

    return next(iter(get_close_matches(word, list(known), n=1, cutoff=cutoff)), None)


def file_name(path: object) -> str:
    """A file's name in messages."""
    return "standard input" if str(path) == "-" else str(path)


class BallastError(Exception):
    """Root of everything that Ballast raises on purpose; its text is fit to be shown to a user."""

    public = False
    """The text names no tenant's objects."""


def described(error: Exception, *, most_characters: int = 500) -> str:
    """Of any error, its kind and its words, for a status: an object that a user wrote may be in them."""
    return f"{type(error).__name__}: {error}"[:most_characters]


class InvalidField(BallastError, ValueError):  # noqa: N818 -- says what is wrong, reads well when raised
    """`field` holds `value`, which can't be used; `remedy` says what to write instead.

    Also a ValueError, so that a pydantic validator may raise it.
    """

    def __init__(self, field: str, value: Any, remedy: str) -> None:
        super().__init__(field, value, remedy)
        self.field = field
        self.value = value
        self.remedy = remedy

    def __str__(self) -> str:
        shown = _CREDENTIALS.sub("//***@", repr(self.value))
        if len(shown) > 120:
            shown = shown[:117] + "..."
        return f"{self.field}: {shown}: {self.remedy}" if self.field else f"{shown}: {self.remedy}"


class InvalidResource(BallastError):  # noqa: N818 -- as above
    """`what` (kind and name) has the given problems, at least one."""

    def __init__(self, what: str, problems: Sequence[InvalidField]) -> None:
        super().__init__(what, tuple(problems))
        self.what = what
        self.problems = tuple(problems)

    def __str__(self) -> str:
        return "\n".join([f"{self.what} is not valid:", *(f"  {problem}" for problem in self.problems)])
