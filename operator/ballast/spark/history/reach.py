"""Whether Prometheus answers at all: Spark takes long to start, and its tasks to give up."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing, suppress

from ballast.errors import InvalidField
from ballast.spark.errors import SourceError
from ballast.spark.source.api import PATIENCE, Api
from ballast.spark.source.grid import Grid
from ballast.spark.source.server import server

_REMEDY = (
    "the address must answer from here (`kubectl port-forward` brings one inside a cluster) and let you in"
    " (--header, --bearer-token-file, --ca-file)"
)
_PATIENCE = PATIENCE.new(connect=1, read=1)
"""For a server that answers, that of the tasks; one that does not is asked once more."""


def ask_once(source: Mapping[str, str], *, now_ms: int) -> None:
    """Asks what costs nothing, where the tasks ask too. `source` as in Origin.

    Raises SourceError with the address, the reason and what helps, and InvalidField if there can be no such server.
    """
    asked = server(source)
    # Files with certificates or a token may be where the tasks run, and nowhere else.
    with suppress(InvalidField), closing(Api(asked, patience=_PATIENCE)) as api:
        try:
            api.range("vector(1)", Grid(now_ms, 1000, 1))
        except SourceError as error:
            raise SourceError(f"--prometheus: {error}; {_REMEDY}") from error
