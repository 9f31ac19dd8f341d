"""The chart as the real helm renders it, without a cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.testbed.helm import Helm

JSON = dict[str, Any]

CHART = Path(__file__).parents[2] / "charts" / "ballast"
NAMESPACE = "operators"
KUBERNETES = "1.37.1"


@dataclass(frozen=True, slots=True)
class Manifests:
    documents: tuple[JSON, ...]

    def of(self, kind: str) -> list[JSON]:
        return [document for document in self.documents if document["kind"] == kind]

    def named(self, kind: str, name: str) -> JSON:
        found = [each for each in self.of(kind) if each["metadata"]["name"] == name]
        assert len(found) == 1, f"{len(found)} {kind}s are named {name}"
        return found[0]

    @property
    def deployment(self) -> JSON:
        (found,) = self.of("Deployment")
        return found

    def pods(self) -> Iterator[tuple[str, JSON]]:
        """The pod template of everything that runs pods, and what that is."""
        for document in self.documents:
            spec = document.get("spec", {})
            if document["kind"] == "CronJob":
                spec = spec["jobTemplate"]["spec"]
            if "template" in spec:
                yield document["kind"], spec["template"]

    def pod(self, kind: str) -> JSON:
        return dict(self.pods())[kind]


@dataclass(frozen=True, slots=True)
class Renderer:
    """Renders the same values once; what it returns is not to be changed."""

    helm: Helm
    _known: dict[str, Manifests] = field(default_factory=dict)

    def __call__(
        self,
        values: JSON | None = None,
        *,
        release: str = "ballast",
        kubernetes: str = KUBERNETES,
    ) -> Manifests:
        """Raises TestbedError with helm's words where the chart refuses."""
        key = json.dumps([values, release, kubernetes], sort_keys=True)
        if key not in self._known:
            self._known[key] = self._render(values or {}, release, kubernetes)
        return self._known[key]

    def _render(self, values: JSON, release: str, kubernetes: str) -> Manifests:
        file = self.helm.home / "values.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(yaml.safe_dump(values))
        options = (f"--namespace={NAMESPACE}", f"--kube-version={kubernetes}", f"--values={file}")
        text = self.helm.run("template", release, str(CHART), *options)
        return Manifests(tuple(document for document in yaml.safe_load_all(text) if document))
