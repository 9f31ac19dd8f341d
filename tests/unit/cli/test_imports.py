"""What a command does not need, it does not load: importing is most of what a command costs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.apiserver import Answer, kubeconfig, scripted

CLUSTER = ("urllib3", "ballast.kube.client")
OPERATOR = ("kopf", "aiohttp", "prometheus_client", "ballast.controller.operator")
LIBRARIES = ("kubernetes", "requests", "prometheus_api_client", "pyspark", "pandas", "pyarrow")
PLANNER = ("numpy", "ballast.planner.plan", "ballast.simulation")
TABLES = ("rich",)
MODELS = ("ballast.api.meta",)

NONE, ABSENT = Answer(body={"items": [], "metadata": {}}), Answer(404)

RUN = """
import json, sys
from ballast.cli.main import call
try:
    call("ballast", sys.argv[1:])
except SystemExit:
    pass
finally:
    print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""
LOAD = """
import json, sys
import ballast.cli.main, ballast.cli.{command}
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def loaded(source: str, *arguments: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", source, *arguments], capture_output=True, text=True, check=True)
    return set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize(
    ("arguments", "unneeded"),
    [
        (["--help"], (*CLUSTER, *OPERATOR, *LIBRARIES, *PLANNER, *TABLES, *MODELS, "yaml")),
        (["release", "--stale"], (*OPERATOR, *LIBRARIES, *PLANNER, *TABLES, *MODELS)),
        (["status"], (*OPERATOR, *LIBRARIES)),
        (["plan"], (*OPERATOR, *LIBRARIES)),
        (["explain", "pod/p"], (*OPERATOR, *LIBRARIES)),
        (["approve", "--all"], (*OPERATOR, *LIBRARIES)),
        (["snapshot"], (*OPERATOR, *LIBRARIES)),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_command_loads_nothing_that_it_does_not_need(
    arguments: list[str], unneeded: tuple[str, ...], tmp_path: Path
) -> None:
    with scripted() as script:
        script.by = lambda asked: ABSENT if asked.path.endswith("/ballast") else NONE
        options = [] if arguments == ["--help"] else [f"--kubeconfig={kubeconfig(tmp_path, script.url)}"]
        modules = loaded(RUN, *arguments, *options)
        assert bool(script.asked) == bool(options)
    assert sorted(modules & set(unneeded)) == []


@pytest.mark.parametrize(
    ("command", "unneeded"),
    [
        ("status", (*CLUSTER, *OPERATOR, *LIBRARIES)),
        ("simulate", (*CLUSTER, *OPERATOR, *LIBRARIES)),
        ("crds", (*CLUSTER, *OPERATOR, *LIBRARIES, *PLANNER, *TABLES)),
        ("run", (*LIBRARIES, "ballast.simulation", *TABLES)),
    ],
)
def test_a_command_that_asks_no_cluster_loads_no_client(command: str, unneeded: tuple[str, ...]) -> None:
    assert sorted(loaded(LOAD.format(command=command)) & set(unneeded)) == []
