"""`ballast doctor` of files: what it prints, its exit codes and its patches."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

import pytest
import yaml

from ballast.cli import doctor, inspection
from tests.apiserver import Answer, Asked, kubeconfig, scripted
from tests.unit.cli.program import run
from tests.unit.doctor.provoked import GOOD, as_properties, settings


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    path = tmp_path / "app.conf"
    path.write_text(as_properties(GOOD), encoding="utf-8")
    return path


def test_a_good_application_exits_with_0(conf: Path) -> None:
    ended = run("doctor", "--conf", str(conf))
    read = f"{conf}: read {len(GOOD)} settings; Spark 4.3 is assumed"
    assert (ended.code, ended.out, ended.err) == (0, f"{read}\nNo findings.\n", "")


def test_a_finding_is_a_paragraph_with_its_anchor_and_exits_with_1(conf: Path) -> None:
    conf.write_text(as_properties(settings({"spark.locality.wait": "3s"})), encoding="utf-8")
    ended = run("doctor", "--conf", str(conf))
    assert ended.code == 1
    first, *_ = ended.out.split("\n\n")
    assert first.startswith(f"warning: LocalityWait  {conf}\nspark.locality.wait is 3s. ")
    assert first.endswith("ballast docs doctor#localitywait")


def test_worth_knowing_alone_exits_with_0(conf: Path) -> None:
    conf.write_text(as_properties(settings({"spark.jars": "spark-sql-kafka.jar"})), encoding="utf-8")
    ended = run("doctor", "--conf", str(conf), "-o", "json")
    assert ended.code == 0
    assert [each["id"] for each in json.loads(ended.out)["findings"]] == ["ClientRackMissing"]


def test_a_command_line_is_patched_with_conf_options() -> None:
    ended = run("doctor", "--spark-submit", "spark-submit --conf spark.locality.wait=3s job.py", "--fix")
    assert "  --conf spark.decommission.enabled=true \\\n  --conf spark.locality.wait=0s \\\n" in ended.out


def test_the_patch_of_a_properties_file_leaves_nothing_to_patch(conf: Path) -> None:
    conf.write_text("spark.storage.decommission.enabled true\n", encoding="utf-8")
    patch = run("doctor", "--conf", str(conf), "--fix").out
    conf.write_text(conf.read_text(encoding="utf-8") + patch, encoding="utf-8")
    left = json.loads(run("doctor", "--conf", str(conf), "-o", "json").out)["findings"]
    assert [each["id"] for each in left] == ["TopologyLabelMissing", "WorkloadUnknown"]


def test_an_application_from_standard_input_is_patched_as_yaml(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "{apiVersion: sparkoperator.k8s.io/v1beta2, kind: SparkApplication, metadata: {name: a}, spec: {}}"
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    ended = run("doctor", "-f", "-", "--fix")
    assert yaml.safe_load(ended.out)["spec"]["sparkConf"]["spark.locality.wait"] == "0s"


def test_the_properties_file_of_a_command_counts(conf: Path, tmp_path: Path) -> None:
    script = tmp_path / "submit.sh"
    script.write_text(f"spark-submit --properties-file {conf} job.py", encoding="utf-8")
    assert run("doctor", "--spark-submit", str(script)).code == 0


@pytest.mark.parametrize("option", ["--conf", "-f", "--limits"])
def test_a_file_that_is_not_there_is_wrong_usage(option: str, tmp_path: Path) -> None:
    ended = run("doctor", option, str(tmp_path / "absent"))
    assert (ended.code, ended.out) == (2, "")
    assert "No such file or directory" in ended.err


def test_what_the_kernel_allows_a_pod_is_checked_with_or_without_an_application(conf: Path, tmp_path: Path) -> None:
    limits = tmp_path / "limits.txt"
    buffers = "".join(f"==> /proc/sys/net/core/{name} <==\n8388608\n" for name in ("rmem_max", "wmem_max"))
    limits.write_text(f"Max open files  1024  4096  files\n{buffers}", encoding="utf-8")
    for more in ((), ("--conf", str(conf))):
        ended = run("doctor", "--limits", str(limits), *more)
        assert ended.code == 1
        assert "warning: OpenFilesLow" in ended.out
        assert "1 warning" in ended.out


def test_several_findings_of_one_severity_are_counted_in_the_plural() -> None:
    ended = run("doctor", "--spark-submit", "spark-submit --conf spark.decommission.enabled=true job.py")
    assert re.fullmatch(r"\d+ warnings, 1 info", ended.out.splitlines()[-1])


def test_a_policy_next_to_a_file_is_wrong_usage(conf: Path) -> None:
    ended = run("doctor", "--conf", str(conf), "-p", "streaming")
    assert ended.code == 2
    assert "--policy" in ended.err


@pytest.mark.parametrize("pod", ["exec-1", "/exec-1", "jobs/", "jobs/--all"])
def test_a_pod_is_named_with_its_namespace(pod: str) -> None:
    ended = run("doctor", "--pod", pod)
    assert (ended.code, "write NAMESPACE/NAME" in ended.err) == (2, True)


@pytest.mark.parametrize("printed", ["yes", "yes >&2"], ids=["output", "errors"])
def test_what_a_pod_prints_is_read_up_to_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: str) -> None:
    """The program that is run there is the tenant's own."""
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(f"#!/bin/sh\n{printed}\n", encoding="utf-8")
    kubectl.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(doctor, "_EXEC_SECONDS", 1.0)
    ended = run("doctor", "--pod", "jobs/exec-1")
    assert ended.code == 2


def test_a_budget_s_selector_may_be_as_long_as_the_api_server_takes() -> None:
    """One of a tenant's ended doctor for all."""
    many = [f"v{number}" for number in range(50)]
    expressions = [{"key": "a", "operator": "In", "values": many}, *({"key": v, "operator": "Exists"} for v in many)]
    selector = {"matchLabels": dict.fromkeys(many, "x"), "matchExpressions": expressions}
    found = inspection._budget({"metadata": {"namespace": "n", "name": "b"}, "spec": {"selector": selector}})
    labels = {"a": "v49", **dict.fromkeys(many, "x")}
    assert found.selector.matches(labels)
    assert not found.selector.matches({**labels, "a": "v50"})


def test_a_password_in_the_address_of_prometheus_is_not_shown(tmp_path: Path) -> None:
    spec = {"metrics": {"prometheus": {"url": "http://prometheus:9090"}}}
    policy = {"metadata": {"name": "streaming"}, "spec": spec}

    def answer(asked: Asked) -> Answer:
        if asked.method == "POST":
            return Answer(body={"status": {"allowed": True}})
        found = [policy] if "/balancingpolicies" in asked.path else []
        return Answer(body={"metadata": {}, "items": found})

    with scripted() as script:
        script.by = answer
        config = str(kubeconfig(tmp_path, script.url))
        ended = run("doctor", "--prometheus", "http://me:hunter2@127.0.0.1:9", "--kubeconfig", config, "-o", "json")
    assert ended.code == 1
    assert "127.0.0.1:9" in ended.out
    assert "hunter2" not in f"{ended.out}{ended.err}"
