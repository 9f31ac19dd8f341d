from __future__ import annotations

from pathlib import Path

import pytest

from ballast.kube.client import Client
from ballast.kube.connection import Connection
from ballast.kube.errors import NotConnected
from ballast.kube.kinds import NODE
from tests.unit.kube.scripted import Answer, kubeconfig, scripted

INSIDE = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def account(folder: Path) -> Path:
    for name, text in {"token": "first\n", "ca.crt": "certificate", "namespace": "ballast-system"}.items():
        (folder / name).write_text(text)
    return folder


def test_a_kubeconfig_names_server_and_namespace(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, "https://cluster.example:6443")
    first, second = Connection.from_kubeconfig(path), Connection.from_kubeconfig(path, context="second")
    assert (first.server, first.namespace) == ("https://cluster.example:6443", "analytics")
    assert second.namespace == "default"


def test_inside_a_pod_the_service_account_says_who_and_where(tmp_path: Path) -> None:
    found = Connection.from_pod(INSIDE, service_account=account(tmp_path))
    assert (found.server, found.namespace) == ("https://10.96.0.1:443", "ballast-system")


def test_a_rotated_token_is_taken_up_within_a_minute(tmp_path: Path) -> None:
    clock = Clock()
    with scripted(Answer()) as script:
        connection = Connection.from_pod(INSIDE, service_account=account(tmp_path), monotonic=clock)
        connection.configuration.host = script.url
        connection.configuration.ssl_ca_cert = None
        client = Client(connection)
        for text, now in [("second", 30), ("second", 61), ("", 122), ("third", 130)]:
            (tmp_path / "token").write_text(text)
            clock.now = now
            client.get(NODE, "node-1")
        sent = [asked.headers["Authorization"].lower().split() for asked in script.asked]
    assert sent == [["bearer", "first"], ["bearer", "second"], ["bearer", "second"], ["bearer", "third"]]


@pytest.mark.parametrize(
    ("environ", "named", "server"),
    [
        pytest.param({**INSIDE}, True, "https://named", id="a file that was named"),
        pytest.param({**INSIDE, "KUBECONFIG": "{env}"}, False, "https://env", id="the environment's file"),
        pytest.param({**INSIDE}, False, "https://10.96.0.1:443", id="inside a pod"),
        pytest.param({"HOME": "{home}"}, False, "https://home", id="the home directory's file"),
    ],
)
def test_the_first_of_these_that_is_there_is_used(
    environ: dict[str, str], named: bool, server: str, tmp_path: Path
) -> None:
    (tmp_path / "home" / ".kube").mkdir(parents=True)
    for folder in ("named", "env", "pod"):
        (tmp_path / folder).mkdir()
    kubeconfig(tmp_path / "home" / ".kube", "https://home").rename(tmp_path / "home" / ".kube" / "config")
    files = {name: kubeconfig(tmp_path / name, f"https://{name}") for name in ("named", "env")}
    filled = {key: value.format(env=files["env"], home=tmp_path / "home") for key, value in environ.items()}
    found = Connection.found(
        filled, kubeconfig=files["named"] if named else None, service_account=account(tmp_path / "pod")
    )
    assert found.server == server


def test_no_way_in_says_what_to_set(tmp_path: Path) -> None:
    with pytest.raises(NotConnected, match="KUBECONFIG or --kubeconfig"):
        Connection.found({"HOME": str(tmp_path)}, service_account=tmp_path)


def test_a_half_mounted_service_account_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(NotConnected, match="token file"):
        Connection.from_pod(INSIDE, service_account=tmp_path)
