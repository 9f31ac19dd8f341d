"""`--matcher LABEL=VALUE`: which series of a Prometheus are this cluster's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

import typer

from ballast.errors import InvalidField

MatcherOption = Annotated[
    list[str] | None,
    typer.Option(
        "--matcher",
        help="LABEL=VALUE of all series to read, such as cluster=prod, where one server has several clusters.",
        metavar="MATCHER",
    ),
]


def matchers(texts: list[str] | None) -> Mapping[str, str]:
    """Values by label. They become a part of queries. Raises InvalidField."""
    found: dict[str, str] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not re.fullmatch(r"_?[a-zA-Z][a-zA-Z0-9_]*", name):
            raise InvalidField("--matcher", text, "write LABEL=VALUE with a label of Prometheus, such as cluster=prod")
        if name in found:
            raise InvalidField("--matcher", name, "it is given twice: leave one out")
        found[name] = value
    return found
