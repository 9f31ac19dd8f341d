from __future__ import annotations

from pathlib import Path

import pytest

from tests.charts.rendering import Manifests, Renderer
from tests.charts.schemas import Kubeconform, definitions_in, write_custom, write_kubernetes
from tests.testbed.binaries import (
    find_binaries,
    karpenter_definitions,
    kubernetes_openapi,
    kueue_manifests,
    prometheus_operator_definitions,
)
from tests.testbed.helm import Helm


@pytest.fixture(scope="session")
def render(tmp_path_factory: pytest.TempPathFactory) -> Renderer:
    binary = find_binaries(["helm"], progress=print)["helm"]
    return Renderer(Helm(binary, Path("/dev/null"), tmp_path_factory.mktemp("helm")))


@pytest.fixture(scope="session")
def defaults(render: Renderer) -> Manifests:
    return render()


@pytest.fixture(scope="session")
def kubeconform(tmp_path_factory: pytest.TempPathFactory) -> Kubeconform:
    """It knows Kubernetes' own kinds, and those of Prometheus Operator, Karpenter and Kueue."""
    folder = tmp_path_factory.mktemp("schemas")
    write_kubernetes(kubernetes_openapi() / "swagger.json", folder)
    for file in (prometheus_operator_definitions(), karpenter_definitions(), kueue_manifests()):
        write_custom(definitions_in(file), folder)
    return Kubeconform(find_binaries(["kubeconform"], progress=print)["kubeconform"], folder)
