from __future__ import annotations

from pathlib import Path

import pytest

from tests.charts.rendering import Manifests, Renderer
from tests.testbed.binaries import find_binaries
from tests.testbed.helm import Helm


@pytest.fixture(scope="session")
def render(tmp_path_factory: pytest.TempPathFactory) -> Renderer:
    binary = find_binaries(["helm"], progress=print)["helm"]
    return Renderer(Helm(binary, Path("/dev/null"), tmp_path_factory.mktemp("helm")))


@pytest.fixture(scope="session")
def defaults(render: Renderer) -> Manifests:
    return render()
