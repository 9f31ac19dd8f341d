import json
from pathlib import Path

import pytest

from tests.testbed.errors import TestbedError
from tests.testbed.testbed import Testbed

pytestmark = pytest.mark.cluster

CHART = {
    "Chart.yaml": "apiVersion: v2\nname: small\nversion: 0.1.0\n",
    "templates/map.yaml": (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: installed}\n"
        "data: {server: {{ .Capabilities.KubeVersion.Version | quote }}}\n"
    ),
}


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    for name, text in CHART.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_chart_is_installed_by_the_real_helm(control_plane: Testbed, chart: Path) -> None:
    control_plane.create_namespace("charts")

    control_plane.helm("install", "one", str(chart), "--namespace=charts")

    installed = control_plane.kubectl("get", "configmap", "installed", "--namespace=charts", "--output=json")
    server = json.loads(control_plane.kubectl("get", "--raw", "/version"))
    assert json.loads(installed)["data"] == {"server": server["gitVersion"]}
    releases = json.loads(control_plane.helm("list", "--namespace=charts", "--output=json"))
    assert [release["status"] for release in releases] == ["deployed"]


def test_what_helm_refuses_is_an_error_in_its_own_words(control_plane: Testbed, tmp_path: Path) -> None:
    with pytest.raises(TestbedError, match=r"helm template .* failed: .*Chart.yaml"):
        control_plane.helm("template", str(tmp_path))
