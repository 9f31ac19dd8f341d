"""The site: every page is reached, links and anchors hold, and questions are found by their words."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from scripts import site
from tests.uv import uv

ROOT = Path(__file__).parents[2]


def _build(folder: Path) -> subprocess.CompletedProcess[str]:
    """`pages` in that folder as a site in `site`, as `make site` builds it."""
    config = (ROOT / "zensical.toml").read_text(encoding="utf-8")
    config = config.replace('"build/site-pages"', '"pages"').replace('"build/site"', '"site"')
    (folder / "zensical.toml").write_text(config, encoding="utf-8")
    command = [str(uv()), "tool", "run", "--quiet", "--from", site.ZENSICAL, "zensical", "build", "--strict"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=os.environ)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    site.stage(folder / "pages")
    done = _build(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_of_the_documentation_is_in_the_navigation() -> None:
    listed = set(re.findall(r'= "(docs/[\w/.-]+\.md)"', (ROOT / "zensical.toml").read_text(encoding="utf-8")))
    assert {str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")} == listed


@pytest.mark.parametrize("broken", ["[gone](docs/gone.md)", "[gone](docs/use.md#no-such-section)"])
def test_a_link_or_an_anchor_that_leads_nowhere_ends_the_build(built: Path, tmp_path: Path, broken: str) -> None:
    shutil.copytree(built / "pages", tmp_path / "pages")
    first = tmp_path / "pages" / "index.md"
    first.write_text(f"{first.read_text(encoding='utf-8')}\n{broken}\n", encoding="utf-8")
    assert _build(tmp_path).returncode != 0


def test_a_page_loads_nothing_from_elsewhere(built: Path) -> None:
    first = (built / "site" / "index.html").read_text(encoding="utf-8")
    assert re.findall(r'(?:src|rel="stylesheet" href|href="[^"]*" rel="stylesheet")="?(https?:[^"]*)', first) == []


QUESTIONS = {
    "kubeflow SparkApplication": "docs/recipes/kubeflow.html",
    "Apache spark-kubernetes-operator": "docs/recipes/apache.html",
    "dynamicAllocation": "docs/recipes/dynamic-allocation.html",
    "Connect server": "docs/recipes/spark-connect.html",
    "Karpenter consolidation": "docs/recipes/karpenter.html",
    "cluster-autoscaler": "docs/autoscaling.html",
    "Kueue": "docs/recipes/kueue.html",
    "Volcano YuniKorn": "docs/questions.html",
    "ServiceMonitor PodMonitor": "charts/ballast/index.html",
    "Thanos Mimir": "docs/questions.html",
    "upgrade rollback CRDs": "docs/upgrading.html",
    "Spark versions": "docs/questions.html",
    "Kubernetes versions EKS": "docs/questions.html",
    "gate seconds": "docs/metrics.html",
    "longest batch": "docs/moves.html",
    "memory executors nodes": "docs/questions.html",
    "zone outage maxExecutorsPerZonePercent": "docs/questions.html",
    "spot notice": "docs/recipes/spot.html",
    "Prometheus down": "docs/questions.html",
    "users may write a policy": "docs/questions.html",
    "cost GB zones": "docs/report.html",
    "alert runbook": "docs/alerts.html",
    "switch off incident stop": "docs/incident.html",
}


@pytest.mark.parametrize(("words", "page"), QUESTIONS.items())
def test_a_question_is_found_by_its_words(built: Path, words: str, page: str) -> None:
    index = json.loads((built / "site" / "search.json").read_text(encoding="utf-8"))
    texts: dict[str, str] = {}
    for item in index["items"]:
        name = item["location"].partition("#")[0]
        texts[name] = f"{texts.get(name, '')} {item['title']} {item['text']}".lower()
    assert all(word.lower() in texts[page] for word in words.split())
