"""Pods on a real cluster: what the API tells about them, and what becomes of their processes."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.testbed.errors import TestbedError
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until
from tests.unit.cli.program import run

Json = dict[str, Any]
pytestmark = [pytest.mark.cluster, pytest.mark.soak]


@pytest.fixture
def namespace(testbed: Testbed) -> Iterator[str]:
    name = testbed.create_namespace(f"pods-{uuid4().hex[:6]}")
    yield name
    testbed.kubectl("delete", "namespace", name, "--wait=false")


def script(text: str, *, name: str = "main", **fields: Any) -> Json:
    """A container that runs a shell script."""
    return {"name": name, "image": "host", "command": ["sh", "-c", text], **fields}


def pod(namespace: str, *containers: Json, name: str = "web", labels: Json | None = None, **spec: Any) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels or {}},
        "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 5, "containers": list(containers), **spec},
    }


def read(testbed: Testbed, namespace: str, name: str = "web") -> Json:
    found: Json = json.loads(testbed.kubectl("get", "pod", name, "-n", namespace, "-o", "json"))
    return found


def awaited(testbed: Testbed, namespace: str, holds: Callable[[Json], object], *, what: str, name: str = "web") -> Json:
    """The pod, once `holds` of its status."""

    def current() -> Json | None:
        found = read(testbed, namespace, name)
        return found if holds(found.get("status", {})) else None

    found: Json | None = wait_until(
        current, what=what, timeout_seconds=40, explain=lambda: json.dumps(read(testbed, namespace, name)["status"])
    )
    assert found is not None
    return found


def first_node(testbed: Testbed) -> str:
    return next(iter(testbed.node_addresses))


def ended(status: Json) -> bool:
    return status.get("phase") in {"Succeeded", "Failed"}


def ready(status: Json) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions", []))


def log(testbed: Testbed, namespace: str, name: str = "web", *options: str) -> str:
    return testbed.kubectl("logs", name, "-n", namespace, *options)


def log_file(testbed: Testbed, of: Json, *, container: str = "main", run: int = 0) -> Path:
    """The log on disk, which stays when the pod has gone."""
    metadata = of["metadata"]
    folder = f"{metadata['namespace']}_{metadata['name']}_{metadata['uid']}"
    return testbed.instance.folder / "kubelet" / "logs" / folder / container / f"{run}.log"


def delete(testbed: Testbed, namespace: str, *options: str, name: str = "web") -> float:
    """Delete a pod and wait until it has gone: how long that took, in seconds."""
    begun = time.monotonic()
    testbed.kubectl("delete", "pod", name, "-n", namespace, *options)
    return time.monotonic() - begun


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("true", ("Succeeded", 0, "Completed")),
        ("exit 3", ("Failed", 3, "Error")),
        ("kill -9 $$$$", ("Failed", 137, "Error")),
    ],
)
def test_a_pod_ends_with_its_exit_code(
    testbed: Testbed, namespace: str, text: str, expected: tuple[str, int, str]
) -> None:
    testbed.apply(pod(namespace, script(text)))
    status = awaited(testbed, namespace, ended, what="the pod's end")["status"]
    terminated = status["containerStatuses"][0]["state"]["terminated"]
    assert (status["phase"], terminated["exitCode"], terminated["reason"]) == expected


def test_a_pod_has_an_address_of_its_own_on_its_node(testbed: Testbed, namespace: str) -> None:
    node = first_node(testbed)
    for name in ("one", "two"):
        testbed.apply(pod(namespace, script("sleep 60"), name=name, nodeName=node))
    found = [awaited(testbed, namespace, ready, what="Ready", name=name)["status"] for name in ("one", "two")]
    assert found[0]["podIP"] != found[1]["podIP"]
    assert {status["hostIP"] for status in found} == {testbed.node_addresses[node]}


WHO_AM_I = """
import json, os, ssl, urllib.request
folder = "/var/run/secrets/kubernetes.io/serviceaccount/"
host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
body = json.dumps({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}).encode()
headers = {"Authorization": "Bearer " + open(folder + "token").read(), "Content-Type": "application/json"}
url = f"https://{host}:{port}/apis/authentication.k8s.io/v1/selfsubjectreviews"
context = ssl.create_default_context(cafile=folder + "ca.crt")
answer = urllib.request.urlopen(urllib.request.Request(url, body, headers), context=context)
print(json.load(answer)["status"]["userInfo"]["username"])
"""


def test_a_pod_talks_to_the_api_as_its_service_account(testbed: Testbed, namespace: str) -> None:
    main = {"name": "main", "image": "host", "command": ["python3", "-c", WHO_AM_I]}
    testbed.apply(pod(namespace, main, securityContext={"runAsUser": 1234, "fsGroup": 4321}))
    awaited(testbed, namespace, ended, what="the pod's end")
    assert log(testbed, namespace) == f"system:serviceaccount:{namespace}:default\n"


WHO_IS_THERE = """
import ssl, urllib.request
context = ssl.create_default_context(cafile="/var/run/secrets/kubernetes.io/serviceaccount/ca.crt")
print(urllib.request.urlopen("https://kubernetes.default.svc/version", context=context).read().decode())
"""


def test_the_api_server_is_found_by_its_name(testbed: Testbed, namespace: str) -> None:
    testbed.apply(pod(namespace, {"name": "main", "image": "host", "command": ["python3", "-c", WHO_IS_THERE]}))
    awaited(testbed, namespace, ended, what="the pod's end")
    assert "gitVersion" in json.loads(log(testbed, namespace))


def test_config_maps_and_secrets_are_files_and_variables(testbed: Testbed, namespace: str) -> None:
    metadata = {"name": "settings", "namespace": namespace}
    testbed.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"mode": "fast"}})
    testbed.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"key": "hidden"}})
    main = script(
        "cat /etc/settings/mode /etc/keys/key; echo $MODE $LABEL",
        env=[
            {"name": "MODE", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "mode"}}},
            {"name": "LABEL", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['tier']"}}},
        ],
        volumeMounts=[{"name": "settings", "mountPath": "/etc/settings"}, {"name": "keys", "mountPath": "/etc/keys"}],
    )
    volumes = [
        {"name": "settings", "configMap": {"name": "settings"}},
        {"name": "keys", "secret": {"secretName": "settings"}},
    ]
    testbed.apply(pod(namespace, main, labels={"tier": "front"}, volumes=volumes))
    awaited(testbed, namespace, ended, what="the pod's end")
    assert log(testbed, namespace) == "fasthiddenfast front\n"


def test_a_pod_waits_for_what_its_volumes_need(testbed: Testbed, namespace: str) -> None:
    main = script("cat /etc/late/word", volumeMounts=[{"name": "late", "mountPath": "/etc/late"}])
    testbed.apply(pod(namespace, main, volumes=[{"name": "late", "configMap": {"name": "late"}}]))
    wait_until(
        lambda: "FailedMount" in testbed.kubectl("get", "events", "-n", namespace), what="an event about the volume"
    )
    metadata = {"name": "late", "namespace": namespace}
    testbed.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"word": "here"}})
    awaited(testbed, namespace, ended, what="the pod's end")
    assert log(testbed, namespace) == "here"


def test_an_unknown_image_says_so(testbed: Testbed, namespace: str) -> None:
    testbed.apply(pod(namespace, {"name": "main", "image": "nobody/knows"}))

    def refused(status: Json) -> bool:
        waiting = [c["state"].get("waiting", {}) for c in status.get("containerStatuses", [])]
        return any("nobody/knows" in entry.get("message", "") for entry in waiting)

    awaited(testbed, namespace, refused, what="a reason")


def test_init_containers_run_first_and_share_volumes(testbed: Testbed, namespace: str) -> None:
    mounts = [{"name": "shared", "mountPath": "/shared"}]
    inits = [script(f"echo {n} >> /shared/order", name=n, volumeMounts=mounts) for n in ("first", "second")]
    main = script("cat /shared/order", volumeMounts=mounts)
    testbed.apply(pod(namespace, main, initContainers=inits, volumes=[{"name": "shared", "emptyDir": {}}]))
    awaited(testbed, namespace, ended, what="the pod's end")
    assert log(testbed, namespace, "web", "-c", "main") == "first\nsecond\n"


def test_a_sidecar_runs_next_to_and_does_not_keep_the_pod_from_succeeding(testbed: Testbed, namespace: str) -> None:
    sidecar = script("trap 'exit 0' TERM; while :; do sleep 0.1; done", name="side", restartPolicy="Always")
    testbed.apply(pod(namespace, script("sleep 0.2"), initContainers=[sidecar]))
    status = awaited(testbed, namespace, ended, what="the pod's end")["status"]
    assert status["phase"] == "Succeeded"
    assert "terminated" in status["initContainerStatuses"][0]["state"]


def test_a_failed_container_is_restarted_by_policy_and_its_last_log_kept(testbed: Testbed, namespace: str) -> None:
    mounts = [{"name": "shared", "mountPath": "/shared"}]
    main = script(
        "test -e /shared/seen && echo again && sleep 60; touch /shared/seen; echo once; exit 5", volumeMounts=mounts
    )
    volumes = [{"name": "shared", "emptyDir": {}}]
    testbed.apply(pod(namespace, main, restartPolicy="OnFailure", volumes=volumes))

    def restarted(status: Json) -> bool:
        return any(c["restartCount"] == 1 and "running" in c["state"] for c in status.get("containerStatuses", []))

    status = awaited(testbed, namespace, restarted, what="a restart")["status"]
    assert status["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 5
    assert log(testbed, namespace, "web", "--previous") == "once\n"
    assert log(testbed, namespace) == "again\n"


def test_a_crash_loop_backs_off(testbed: Testbed, namespace: str) -> None:
    testbed.apply(pod(namespace, script("exit 1"), restartPolicy="Always"))

    def backing_off(status: Json) -> bool:
        waiting = [c["state"].get("waiting", {}) for c in status.get("containerStatuses", [])]
        return any(entry.get("reason") == "CrashLoopBackOff" for entry in waiting)

    assert awaited(testbed, namespace, backing_off, what="back-off")["status"]["phase"] == "Running"
    delete(testbed, namespace)


def test_too_much_memory_is_told_from_other_kills(testbed: Testbed, namespace: str) -> None:
    main = {
        "name": "main",
        "image": "host",
        "command": ["python3", "-c", "x = bytearray(200 << 20); print('not killed')"],
        "resources": {"limits": {"memory": "64Mi"}},
    }
    testbed.apply(pod(namespace, main))
    status = awaited(testbed, namespace, ended, what="the pod's end")["status"]
    terminated = status["containerStatuses"][0]["state"]["terminated"]
    assert (terminated["reason"], terminated["exitCode"]) == ("OOMKilled", 137)


def test_a_pod_is_ready_when_its_probe_passes(testbed: Testbed, namespace: str) -> None:
    probe = {"exec": {"command": ["test", "-e", "/ready"]}, "periodSeconds": 1}
    testbed.apply(
        pod(namespace, script("sleep 60"), name="never"), pod(namespace, script("sleep 60", readinessProbe=probe))
    )
    awaited(testbed, namespace, ready, what="Ready", name="never")
    running = awaited(testbed, namespace, lambda s: s.get("phase") == "Running", what="Running")
    assert not ready(running["status"])
    testbed.kubectl("exec", "web", "-n", namespace, "--", "touch", "/ready")
    awaited(testbed, namespace, ready, what="Ready")


def test_a_failing_liveness_probe_restarts_the_container(testbed: Testbed, namespace: str) -> None:
    probe = {"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 1}
    main = script("trap 'exit 0' TERM; while :; do sleep 0.1; done", livenessProbe=probe)
    testbed.apply(pod(namespace, main, restartPolicy="Always"))

    def restarted(status: Json) -> bool:
        return any(c["restartCount"] > 0 for c in status.get("containerStatuses", []))

    awaited(testbed, namespace, restarted, what="a restart")
    delete(testbed, namespace)


GRACE_SECONDS = 30.0
"""Of a pod that does not say otherwise; the hooks here are awaited for much less, or would last much longer."""
FAITHFUL = "trap 'echo term; exit 0' TERM; echo up; while :; do sleep 0.1; done"


def test_deletion_runs_the_hook_first_then_asks_the_process_to_end(testbed: Testbed, namespace: str) -> None:
    hook = {"preStop": {"exec": {"command": ["sh", "-c", "echo hook >> /shared/out; sleep 1"]}}}
    text = "trap 'echo term >> /shared/out; cat /shared/out; exit 0' TERM; while :; do sleep 0.1; done"
    main = script(text, lifecycle=hook, volumeMounts=[{"name": "shared", "mountPath": "/shared"}])
    testbed.apply(pod(namespace, main, volumes=[{"name": "shared", "emptyDir": {}}]))
    found = awaited(testbed, namespace, ready, what="Ready")
    assert 1.0 < delete(testbed, namespace) < GRACE_SECONDS
    assert log_file(testbed, found).read_text() == "hook\nterm\n"


def test_the_hook_counts_against_the_grace_period(testbed: Testbed, namespace: str) -> None:
    hook = {"preStop": {"exec": {"command": ["sleep", "60"]}}}
    testbed.apply(pod(namespace, script(FAITHFUL, lifecycle=hook), terminationGracePeriodSeconds=2))
    awaited(testbed, namespace, ready, what="Ready")
    assert 2.0 <= delete(testbed, namespace) < GRACE_SECONDS


def test_who_does_not_end_in_time_is_killed(testbed: Testbed, namespace: str) -> None:
    main = script("trap '' TERM; while :; do sleep 0.1; done")
    testbed.apply(pod(namespace, main, terminationGracePeriodSeconds=2))
    awaited(testbed, namespace, ready, what="Ready")
    assert delete(testbed, namespace) >= 2.0


def test_what_a_container_left_in_the_background_goes_with_it(testbed: Testbed, namespace: str) -> None:
    testbed.apply(pod(namespace, script("setsid sleep 7531 & sleep 60")))
    awaited(testbed, namespace, ready, what="Ready")
    wait_until(lambda: processes("sleep 7531"), what="the process in the background")
    delete(testbed, namespace)
    assert not processes("sleep 7531")


def processes(command: str) -> list[int]:
    """Processes of this machine with that command line."""
    wanted = command.replace(" ", "\0").encode() + b"\0"
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "cmdline").read_bytes() == wanted:
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def test_a_pod_removed_by_force_ends_as_well(testbed: Testbed, namespace: str) -> None:
    testbed.apply(pod(namespace, script("trap '' TERM; sleep 7532 & wait; sleep 60")))
    awaited(testbed, namespace, ready, what="Ready")
    wait_until(lambda: processes("sleep 7532"), what="the process")
    delete(testbed, namespace, "--force", "--grace-period=0")
    wait_until(lambda: not processes("sleep 7532"), what="the end of the process", timeout_seconds=10)


def test_logs_can_be_followed_to_the_end(testbed: Testbed, namespace: str) -> None:
    testbed.apply(pod(namespace, script("for i in 1 2 3; do echo $i; sleep 0.3; done")))
    awaited(testbed, namespace, lambda s: s.get("phase") != "Pending", what="a start")
    assert log(testbed, namespace, "web", "--follow") == "1\n2\n3\n"
    assert log(testbed, namespace, "web", "--tail=1") == "3\n"
    assert log(testbed, namespace, "web", "--limit-bytes=3") == "1\n2"


def test_a_command_inside_has_its_streams_and_its_exit_code(testbed: Testbed, namespace: str) -> None:
    testbed.apply(pod(namespace, script("sleep 60")))
    awaited(testbed, namespace, ready, what="Ready")
    said = testbed.kubectl(
        "exec", "-i", "web", "-n", namespace, "--", "sh", "-c", "cat; hostname", input_text="hello\n"
    )
    assert said == "hello\nweb\n"
    with pytest.raises(TestbedError, match="exit code 6"):
        testbed.kubectl("exec", "web", "-n", namespace, "--", "sh", "-c", "exit 6")


def test_replicas_listen_on_the_same_port_and_are_found_by_name(testbed: Testbed, namespace: str) -> None:
    server = {
        "name": "main",
        "image": "host",
        "command": ["python3", "-m", "http.server", "8080"],
        "workingDir": "/serve",
        "readinessProbe": {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 1},
        "volumeMounts": [{"name": "info", "mountPath": "/serve"}],
    }
    info = {"name": "info", "downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}}
    metadata = {"name": "web", "namespace": namespace}
    selector = {"app": "web"}
    template = {
        "metadata": {"labels": selector},
        "spec": {"containers": [server], "volumes": [info], "nodeName": first_node(testbed)},
    }
    testbed.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata,
            "spec": {"replicas": 2, "selector": {"matchLabels": selector}, "template": template},
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata,
            "spec": {"clusterIP": "None", "selector": selector, "ports": [{"port": 8080}]},
        },
    )
    testbed.kubectl("rollout", "status", "deployment/web", "-n", namespace, "--timeout=60s")
    name = f"web.{namespace}.svc"
    both = f"until [ $(getent ahostsv4 {name} | grep -c STREAM) = 2 ]; do sleep 0.1; done"
    ask = "import urllib.request; print(urllib.request.urlopen('http://web:8080/name').read().decode())"
    testbed.apply(pod(namespace, script(f'{both}; python3 -c "{ask}"'), name="client"))
    awaited(testbed, namespace, ended, what="the client's end", name="client")
    assert log(testbed, namespace, "client").startswith("web-")


def test_doctor_reads_a_running_pods_limits_and_buffers(
    testbed: Testbed, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    testbed.apply(pod(namespace, script("sleep 60")))
    awaited(testbed, namespace, ready, what="Ready")
    monkeypatch.setenv("PATH", str(testbed.binary("kubectl").parent), prepend=":")
    asked = ("doctor", "--kubeconfig", str(testbed.kubeconfig), "-o", "json", "--pod")
    shown = "ulimit -Hn; cat /proc/sys/net/core/?mem_max"
    files, received, sent = testbed.kubectl("exec", "web", "-n", namespace, "--", "sh", "-c", shown).split()
    found = {each["id"]: each for each in json.loads(run(*asked, f"{namespace}/web").out)["findings"]}
    assert ("OpenFilesLow" in found) == (files != "unlimited" and int(files) < 65_000)
    assert ("SocketBuffersSmall" in found) == (min(int(received), int(sent)) < 1 << 20)
    assert {each["subject"] for each in found.values()} <= {f"Pod {namespace}/web"}
    refused = run(*asked, f"{namespace}/absent")
    assert (refused.code, "not found" in refused.err) == (2, True)
