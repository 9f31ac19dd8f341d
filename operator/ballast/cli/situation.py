"""What the reading commands look at: one pool as the operator would see it now, or as a file holds it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
import yaml
from pydantic import TypeAdapter, ValidationError

from ballast.cli.access import connect
from ballast.controller.viewer import Viewer
from ballast.errors import BallastError
from ballast.kube.client import Client
from ballast.model import Memory, Policy, Snapshot

FileOption = Annotated[Path | None, typer.Option("--filename", "-f", help="A snapshot file instead of a cluster.")]
PolicyOption = Annotated[
    str | None, typer.Option("--policy", "-p", help="The BalancingPolicy; the only one if absent.")
]

VERSION = 1


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything that `plan()` needs; also the content of a snapshot file."""

    snapshot: Snapshot
    policy: Policy
    memory: Memory
    version: int = VERSION

    @property
    def now(self) -> float:
        return self.snapshot.taken_at


class UnusableSnapshotError(BallastError):
    """A file that is no snapshot, or one of another version."""


_ADAPTER = TypeAdapter(Situation)


def load(path: Path) -> Situation:
    """Read a snapshot file (YAML or JSON). Raises UnusableSnapshotError with the field and what is wrong."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        situation = _ADAPTER.validate_python(document)
    except (OSError, yaml.YAMLError) as error:
        raise UnusableSnapshotError(f"{path}: {error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise UnusableSnapshotError(
            f"{path}: {field}: {first['msg']}; write a new file with `kubectl ballast snapshot`"
        ) from error
    if situation.version != VERSION:
        raise UnusableSnapshotError(
            f"{path}: version: {situation.version}: this program reads version {VERSION}; write a new file"
        )
    return situation


def dump(situation: Situation) -> str:
    return yaml.safe_dump(_ADAPTER.dump_python(situation, mode="json"), sort_keys=False, allow_unicode=True)


@contextmanager
def viewer(kubeconfig: Path | None, context: str | None) -> Iterator[Viewer]:
    client = Client(connect(kubeconfig, context))
    try:
        yield Viewer(client, clock=time.time)
    finally:
        client.close()


def situation(*, file: Path | None, policy: str | None, kubeconfig: Path | None, context: str | None) -> Situation:
    """From the file if there is one, else from the cluster, as the operator would see it now."""
    if file is not None:
        return load(file)
    with viewer(kubeconfig, context) as look:
        seen = look.context(policy)
        return Situation(seen.snapshot, seen.policy, seen.memory)
