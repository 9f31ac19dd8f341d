"""What users read when a file or a server is not as a command needs it: no library's words, and what to do."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.apiserver import Answer, kubeconfig, scripted
from tests.testbed.pki import create_pki
from tests.unit.cli.program import Ended, run

SCENARIO = str(Path(__file__).parents[3] / "examples" / "scenarios" / "flash-crowd.yaml")

LIBRARY_WORDS = re.compile(
    r"Errno|Traceback|Input should|Value error|unicode string|while (parsing|scanning)|Expecting|codec|"
    r"HTTPS?Connection|urllib3|_ssl\.c|RemoteDisconnected|malformed|Expected `"
)
FILES = {
    "absent.yaml": None,
    "folder.yaml": None,
    "broken.yaml": b"a: [1, 2\nb: }",
    "tab.yaml": b"a:\n\t- b",
    "broken.json": b'{"a": 1,,}',
    "binary.yaml": b"\xff\xfe\x00abc",
    "control.yaml": b"a: \x00",
    "date.yaml": b"a: 2026-13-45",
    "empty.yaml": b"",
    "list.yaml": b"- 1\n- 2\n",
    "other.yaml": b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "folder.yaml").mkdir()
    for name, content in FILES.items():
        if content is not None:
            (tmp_path / name).write_bytes(content)
    labels = {"spark-role": "executor", "spark-app-selector": "spark-1"}
    pod = {"metadata": {"name": "e1", "namespace": "team", "labels": labels}}
    (tmp_path / "pods.json").write_text(json.dumps({"items": [pod]}))
    return tmp_path


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("status -f", "--filename"),
        ("plan -f", "--filename"),
        ("explain e1 -f", "--filename"),
        ("report -f", "--filename"),
        ("discover -f", "--filename"),
        ("discover -f pods.json --progress", "--progress"),
        ("size -f", "--filename"),
        ("size --progress", "--progress"),
        ("size --event-log", "--event-log"),
        ("size --gc-log", "--gc-log"),
        ("doctor -f", "--filename"),
        ("simulate", "SCENARIO"),
        (f"simulate {SCENARIO} --policy", "--policy"),
        ("backtest --scenario", "--scenario"),
        (f"backtest --scenario {SCENARIO} --policies", "--policies"),
    ],
)
def test_a_file_that_can_t_be_used_is_named_with_its_option_and_a_remedy(
    folder: Path, monkeypatch: pytest.MonkeyPatch, command: str, option: str, name: str
) -> None:
    monkeypatch.chdir(folder)
    ended = run(*command.split(), name)
    assert ended.code == 2
    assert_plain(ended)
    assert re.match(rf"Error: {option}: '{name}(:1)?': .*\b(name|write|let) ", ended.err), ended.err


@pytest.mark.parametrize("command", ["status", "approve m1", "report", "doctor", "release --all"])
@pytest.mark.parametrize("name", FILES)
def test_a_kubeconfig_that_can_t_be_used_is_named(folder: Path, command: str, name: str) -> None:
    ended = run(*command.split(), "--kubeconfig", str(folder / name))
    absent = FILES[name] is None
    assert ended.code == (2 if absent or command == "doctor" else 1)
    assert_plain(ended)
    assert f"{folder / name}" in ended.err
    assert ("name a kubeconfig file" if absent else "(set KUBECONFIG or --kubeconfig)") in ended.err


def refused(code: int, message: str) -> Answer:
    return Answer(code, {"kind": "Status", "status": "Failure", "message": message, "code": code})


ANSWERS = {
    "no rights": (refused(403, 'User "ann" cannot list'), r"you may not (list|get) .*: User \"ann\" cannot list"),
    "unknown user": (refused(401, "Unauthorized"), "your credentials are not accepted: renew them, or name another"),
    "broken": (refused(500, "etcd has no leader"), "etcd has no leader"),
    "a login page": (Answer(text="<html>log in</html>"), "the answer is not the API server's: it is no JSON object"),
    "a list": (Answer(text="[1]"), "the answer is not the API server's: it is no JSON object"),
    "a gateway": (Answer(502, text="<html>bad gateway</html>"), "HTTP 502 with a web page: not the API server's"),
    "silence": (Answer(hang_up=True), "no answer from http://.*: the connection was closed: see to the cluster"),
}
CLUSTER = ["status", "plan", "explain e1", "snapshot", "approve m1", "approve --all", "discover", "report", "doctor"]


@pytest.mark.parametrize("case", ANSWERS)
@pytest.mark.parametrize("command", [*CLUSTER, "release --stale", "release --all"])
def test_what_the_api_server_answers_is_told_in_plain_words(tmp_path: Path, command: str, case: str) -> None:
    answer, words = ANSWERS[case]
    with scripted(answer) as server:
        options = ["--kubeconfig", str(kubeconfig(tmp_path, server.url)), "--request-timeout", "5s"]
        ended = run(*command.split(), *options)
    assert ended.code == (2 if command == "doctor" else 1)
    # An account without the right to list gate switches waits for no other release, and prints nothing about it.
    told = {"release --all": 2 if case == "no rights" else 3}
    assert_plain(ended, lines=told.get(command, 1))
    assert re.search(rf"^Error: .*{words}", ended.err, re.MULTILINE), ended.err


NEEDS_DEFINITIONS = [
    *("status", "plan", "explain e1", "snapshot", "approve --all", "approve --all -A"),
    *("approve m1", "explain policy/streaming"),
]


@pytest.mark.parametrize("command", NEEDS_DEFINITIONS)
def test_a_cluster_without_our_definitions_is_told_how_to_get_them(tmp_path: Path, command: str) -> None:
    with scripted() as server:
        absent = refused(404, "the server could not find the requested resource")
        server.by = lambda asked: absent if "ballast.dev" in asked.path else Answer(body={"metadata": {}, "items": []})
        ended = run(*command.split(), "--kubeconfig", str(kubeconfig(tmp_path, server.url)))
    assert ended.code == 1
    assert_plain(ended)
    kind = "balancingpolicies" if "policy/" in command else "executormoves"
    assert f"this cluster knows no {kind}: install the chart, or the definitions alone: " in ended.err


@pytest.mark.parametrize("command", CLUSTER)
def test_a_server_that_is_not_there_is_named(tmp_path: Path, command: str) -> None:
    with scripted() as server:
        address = server.url
    ended = run(*command.split(), "--kubeconfig", str(kubeconfig(tmp_path, address)), "--request-timeout", "5s")
    assert_plain(ended)
    assert f"no answer from {address}: connection refused: see to the cluster" in ended.err


def test_a_name_that_has_no_address_is_named(tmp_path: Path) -> None:
    address = "https://no-such-cluster.invalid:6443"
    ended = run("status", "--kubeconfig", str(kubeconfig(tmp_path, address)), "--request-timeout", "5s")
    assert_plain(ended)
    assert f"no answer from {address}: its name can't be resolved: see to the cluster" in ended.err


def test_a_certificate_that_is_not_trusted_is_told(tmp_path: Path) -> None:
    files = create_pki(tmp_path / "pki", control_hosts=["127.0.0.1"], node_hosts=["127.0.0.1"]).apiserver
    with scripted(Answer(), tls=files.server_context()) as server:
        options = ["--kubeconfig", str(kubeconfig(tmp_path, server.url)), "--request-timeout", "5s"]
        ended = run("status", *options)
    assert_plain(ended)
    assert f"no answer from {server.url}: its certificate is not trusted: " in ended.err


POLICY = """
apiVersion: ballast.dev/v1alpha1
kind: BalancingPolicy
metadata: {name: x}
spec:
  mvoes: 1
  nodeSelector: []
  metrics: {maxAge: soon, window: 5}
  placement: {mode: Of, placeOnlyWhenMetricsAreThere: 5}
  moves: {maxConcurrent: many, pauseAfterFailures: -1}
"""


def test_several_wrong_fields_take_a_line_each(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY)
    ended = run("simulate", SCENARIO, "--policy", str(file))
    assert (ended.code, ended.err.splitlines()[0]) == (1, f"Error: {file}: BalancingPolicy x is not valid:")
    assert_plain(ended, lines=None)
    told = dict(line.strip().split(": ", 1) for line in ended.err.splitlines()[1:])
    assert told["spec.mvoes"] == "1: no such field: did you mean moves?"
    assert told["spec.nodeSelector"] == "[]: write a mapping"
    assert told["spec.metrics.window"] == "5: write text"
    assert told["spec.placement.mode"] == "'Of': write Disabled, Recommend or Enforce"
    assert told["spec.moves.maxConcurrent"] == "'many': write a whole number"


def assert_plain(ended: Ended, *, lines: int | None = 1) -> None:
    assert ended.out == ""
    assert not LIBRARY_WORDS.search(ended.err), ended.err
    assert lines in (None, ended.err.count("\n")), ended.err
