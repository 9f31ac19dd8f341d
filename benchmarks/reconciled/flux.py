"""Flux's kustomize-controller on a git repository of this machine.

There is no source-controller: each commit's tree is served as an ExternalArtifact, which is what Flux has for sources
that others make.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from tests.loopback import Handler, Server
from tests.testbed.binaries import find_binaries, flux_definitions
from tests.testbed.instance import free_port
from tests.testbed.testbed import Testbed

JSON = dict[str, Any]
NAMESPACE = "flux-system"
MANAGER = "kustomize-controller"
SOURCE = "repository"
_CHANGES = ("created", "configured")
_DEFINED = ("externalartifacts.source", "gitrepositories.source", "kustomizations.kustomize")


@dataclass(frozen=True, slots=True)
class Commit:
    revision: str
    objects: frozenset[str]
    """Those of the files that it changed or removed, as Flux names them: Kind/namespace/name."""


@dataclass(frozen=True, slots=True)
class Applied:
    """One time that a Kustomization was applied."""

    kustomization: str
    revision: str
    changed: frozenset[str]
    objects: int


@dataclass(slots=True)
class Repository:
    folder: Path
    commits: list[Commit] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._git("init", "--quiet", "--initial-branch=main")

    def commit(self, message: str, files: Mapping[str, str | None]) -> Commit:
        """Write these files, and remove those that are None."""
        objects: set[str] = set()
        for name, text in files.items():
            path = self.folder / name
            objects |= {*_objects(path.read_text() if path.exists() else ""), *_objects(text or "")}
            if text is None:
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        self._git("add", "--all")
        self._git("-c", "user.name=bench", "-c", "user.email=bench@localhost", "commit", "--quiet", "-m", message)
        sha = self._git("rev-parse", "HEAD").decode().strip()
        self.commits.append(Commit(f"main@sha1:{sha}", frozenset(objects)))
        return self.commits[-1]

    def archive(self) -> bytes:
        """The tree of the last commit."""
        return self._git("archive", "--format=tar.gz", "HEAD")

    def _git(self, *arguments: str) -> bytes:
        return subprocess.run(["git", *arguments], cwd=self.folder, check=True, capture_output=True).stdout


@dataclass(frozen=True, slots=True)
class Flux:
    testbed: Testbed
    repository: Repository
    served: Path
    url: str
    log: Path

    def push(self, message: str, files: Mapping[str, str | None]) -> Commit:
        """Commit, and let Flux know."""
        commit, archive = self.repository.commit(message, files), self.repository.archive()
        name = f"{commit.revision.rpartition(':')[2]}.tar.gz"
        (self.served / name).write_bytes(archive)
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        artifact = {
            "digest": f"sha256:{hashlib.sha256(archive).hexdigest()}",
            "lastUpdateTime": now,
            "path": name,
            "revision": commit.revision,
            "size": len(archive),
            "url": f"{self.url}/{name}",
        }
        ready = {"type": "Ready", "status": "True", "reason": "Committed", "message": "", "lastTransitionTime": now}
        status = json.dumps({"status": {"artifact": artifact, "conditions": [ready]}})
        where = ("externalartifact", SOURCE, f"--namespace={NAMESPACE}", "--subresource=status")
        self.testbed.kubectl("patch", *where, "--type=merge", f"--patch={status}")
        return commit

    def add(self, name: str, *, interval_seconds: float, after: Sequence[str] = (), wait: bool = True) -> None:
        """A Kustomization of the repository's folder with that name. It prunes; with `wait` it judges health."""
        spec = {
            "interval": f"{interval_seconds:g}s",
            "retryInterval": "2s",
            "timeout": "20s",
            "path": f"./{name}",
            "prune": True,
            "wait": wait,
            "sourceRef": {"kind": "ExternalArtifact", "name": SOURCE},
            "dependsOn": [{"name": each} for each in after],
        }
        self.testbed.apply(_object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", name, spec))

    def ready(self, name: str) -> tuple[bool, str]:
        """Whether the last commit is applied and healthy there, and what Flux says about it."""
        found = self.testbed.kubectl("get", "kustomization", name, f"--namespace={NAMESPACE}", "--output=json")
        status = json.loads(found).get("status") or {}
        (ready,) = [each for each in status.get("conditions") or () if each["type"] == "Ready"] or [{}]
        current = status.get("lastAppliedRevision") == self.repository.commits[-1].revision
        return ready.get("status") == "True" and current, f"{ready.get('reason')}: {ready.get('message')}"

    def applied(self) -> list[Applied]:
        """Every time so far, the earliest first."""
        return [
            Applied(
                line["name"],
                line["revision"],
                frozenset(each for each, action in line["output"].items() if action in _CHANGES),
                len(line["output"]),
            )
            for line in self.lines()
            if line.get("msg") == "server-side apply completed"
        ]

    def errors(self) -> list[str]:
        return [f"{line['msg']}: {line.get('error')}" for line in self.lines() if line.get("level") == "error"]

    def lines(self) -> list[JSON]:
        *lines, _ = self.log.read_text().split("\n")
        return [json.loads(line) for line in lines if line.startswith("{")]

    def drift(self, since: int = 0) -> list[str]:
        """Objects that Flux changed without a commit that changes them, from the apply with that number on."""
        known = {commit.revision: number for number, commit in enumerate(self.repository.commits)}
        last: dict[str, int] = {}
        found = []
        for number, each in enumerate(self.applied()):
            now = known[each.revision]
            commits = self.repository.commits[last.get(each.kustomization, -1) + 1 : now + 1]
            meant = frozenset[str]().union(*(commit.objects for commit in commits))
            last[each.kustomization] = now
            if number >= since:
                found += [f"{name} ({each.kustomization})" for name in sorted(each.changed - meant)]
        return found


@contextmanager
def flux(testbed: Testbed, folder: Path) -> Iterator[Flux]:
    """The controller at work, with an empty repository."""
    for controller in ("source-controller", "kustomize-controller"):
        testbed.apply(flux_definitions(controller, progress=print))
    for name in _DEFINED:
        definition = f"crd/{name}.toolkit.fluxcd.io"
        for what in ("jsonpath={.status.conditions}", "condition=Established"):
            testbed.kubectl("wait", f"--for={what}", definition)
    testbed.create_namespace(NAMESPACE)
    reference = {"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "name": SOURCE}
    testbed.apply(_object("source.toolkit.fluxcd.io/v1", "ExternalArtifact", SOURCE, {"sourceRef": reference}))
    served, checkout = folder / "served", folder / "checkout"
    for each in (served, checkout):
        each.mkdir()
    with _serving(served) as url, _controller(testbed, folder / "flux.log"):
        yield Flux(testbed, Repository(checkout), served, url, folder / "flux.log")


@contextmanager
def _serving(folder: Path) -> Iterator[str]:
    class Archives(Handler):
        def answer(self) -> None:
            self.reply((folder / self.path.lstrip("/")).read_bytes(), content_type="application/gzip")

    with Server(Archives) as server:
        yield server.url


@contextmanager
def _controller(testbed: Testbed, log: Path) -> Iterator[None]:
    binary = find_binaries([MANAGER], progress=print)[MANAGER]
    ports = [f"--{what}-addr=127.0.0.1:{free_port('127.0.0.1')}" for what in ("metrics", "health")]
    environment = {"PATH": os.environ["PATH"], "HOME": str(log.parent), "KUBECONFIG": str(testbed.kubeconfig)}
    environment["RUNTIME_NAMESPACE"] = NAMESPACE
    with log.open("wb") as output:
        line = [str(binary), *ports, "--feature-gates=ExternalArtifact=true", "--requeue-dependency=2s"]
        process = subprocess.Popen(line, stdout=output, stderr=output, env=environment)
        try:
            yield
        finally:
            process.terminate()
            process.wait(timeout=60)


def _object(version: str, kind: str, name: str, spec: Mapping[str, Any]) -> JSON:
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": dict(spec)}


def _objects(text: str) -> Iterator[str]:
    for document in yaml.safe_load_all(text):
        if document and "metadata" in document:
            metadata = document["metadata"]
            parts = (document["kind"], metadata.get("namespace"), metadata["name"])
            yield "/".join(part for part in parts if part)
