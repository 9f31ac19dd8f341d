import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.testbed.__main__ import main
from tests.testbed.process import REPOSITORY
from tests.testbed.testbed import Testbed
from tests.testbed.traces import traces_of

pytestmark = pytest.mark.cluster


@pytest.fixture
def up() -> Iterator[Testbed]:
    """A testbed with three fake nodes, left running by a command that has ended."""
    command = [sys.executable, "-m", "tests.testbed", "up", "--no-kubelet", "--no-prometheus", "--kwok", "3"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    config = Path(done.stdout.strip())
    testbed = Testbed.attach(config.parent.name)
    yield testbed
    testbed.down()


@pytest.mark.soak
def test_a_testbed_stays_up_until_it_is_taken_down(up: Testbed, capsys: pytest.CaptureFixture[str]) -> None:
    instance = up.instance
    assert up.kubectl("get", "nodes", "--no-headers").count(" Ready ") == 3

    assert main(["kubeconfig", instance.id]) == 0
    assert Path(capsys.readouterr().out.strip()) == up.kubeconfig

    assert main(["status", "-o", "json"]) == 0
    testbeds = json.loads(capsys.readouterr().out)["testbeds"]
    (shown,) = (each for each in testbeds if each["id"] == instance.id)
    assert shown["url"] == up.url
    assert not shown["abandoned"]
    assert {part["name"] for part in shown["parts"] if part["alive"]} == {
        "etcd",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "kwok",
    }

    assert main(["down", instance.id]) == 0
    assert traces_of(instance) == []


@pytest.mark.soak
def test_pods_run_on_fake_nodes(up: Testbed) -> None:
    up.kubectl("create", "deployment", "many", "--image=any", "--replicas=9")
    up.kubectl("wait", "deployment/many", "--for=condition=Available", "--timeout=60s")


def test_an_unknown_testbed_is_an_error_that_says_which_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kubeconfig", "none"]) == 1
    assert "no single testbed matches none; running: " in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--nodes", "--zones", "--racks"])
def test_none_of_what_there_must_be_is_refused(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["up", option, "0"])
    assert f"{option}: '0': write a number from 1 on" in capsys.readouterr().err


def test_help_shows_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    assert "export KUBECONFIG=$(python -m tests.testbed kubeconfig)" in capsys.readouterr().out
