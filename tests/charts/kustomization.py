"""manifests/ballast.yaml: what the chart makes by default, for kustomize. `make generate` writes it.

Without the hook's Job: what isn't Helm would create it next to a live operator. Without the labels that say that Helm
installed it.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from tests.charts.rendering import CHART, KUBERNETES
from tests.testbed.binaries import find_binaries
from tests.testbed.helm import Helm

ROOT = CHART.parents[1]
FILE = ROOT / "manifests" / "ballast.yaml"
RELEASE, NAMESPACE = "ballast", "ballast-system"
_HEADER = "# Generated from charts/ballast by `make generate`. Change that, not this file.\n"
_OF_HELM = re.compile(r"^ +(app\.kubernetes\.io/managed-by|helm\.sh/chart): .*\n", re.MULTILINE)


def rendered(helm: Helm) -> str:
    """What belongs into the file. The definitions are in crds/ already."""
    options = (f"--namespace={NAMESPACE}", f"--kube-version={KUBERNETES}", "--no-hooks")
    return _HEADER + _OF_HELM.sub("", helm.run("template", RELEASE, str(CHART), *options))


def write() -> None:
    """Make the file current."""
    with tempfile.TemporaryDirectory() as home:
        FILE.write_text(rendered(Helm(find_binaries(["helm"], progress=print)["helm"], Path("/dev/null"), Path(home))))
