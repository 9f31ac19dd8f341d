from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ballast.kube.client import Client
from ballast.kube.connection import Connection, proxy_for
from ballast.kube.errors import NotConnected
from ballast.kube.kinds import NODE
from tests.apiserver import Answer, kubeconfig, scripted

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
        client = Client(replace(connection, server=script.url))
        for text, now in [("second", 30), ("second", 61), ("", 122), ("third", 130)]:
            (tmp_path / "token").write_text(text)
            clock.now = now
            client.get(NODE, "node-1")
        sent = [asked.headers["Authorization"] for asked in script.asked]
    assert sent == ["Bearer first", "Bearer second", "Bearer second", "Bearer third"]


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


@pytest.mark.parametrize("missing", ["token", "ca.crt"])
@pytest.mark.parametrize("text", [None, ""])
def test_a_half_mounted_service_account_says_what_is_missing(missing: str, text: str | None, tmp_path: Path) -> None:
    account(tmp_path)
    (tmp_path / missing).unlink()
    if text is not None:
        (tmp_path / missing).write_text(text)
    with pytest.raises(NotConnected, match=rf"connect from inside the cluster: .*{missing}"):
        Connection.from_pod(INSIDE, service_account=tmp_path)


def test_outside_of_a_pod_there_is_no_service_account(tmp_path: Path) -> None:
    with pytest.raises(NotConnected, match="KUBERNETES_SERVICE_HOST"):
        Connection.from_pod({}, service_account=account(tmp_path))


def test_an_address_of_ipv6_is_put_in_brackets(tmp_path: Path) -> None:
    inside = {**INSIDE, "KUBERNETES_SERVICE_HOST": "fd00::1"}
    assert Connection.from_pod(inside, service_account=account(tmp_path)).server == "https://[fd00::1]:443"


PROXY = "http://proxy:3128"


@pytest.mark.parametrize(
    ("server", "environ", "named", "proxy"),
    [
        pytest.param("https://c", {}, None, None, id="none"),
        pytest.param("https://c", {"HTTPS_PROXY": PROXY}, None, PROXY, id="the environment's"),
        pytest.param("https://c", {"http_proxy": PROXY}, None, None, id="only for other addresses"),
        pytest.param("https://c", {"all_proxy": PROXY}, None, PROXY, id="for all addresses"),
        pytest.param("https://c", {"https_proxy": "http://other"}, PROXY, PROXY, id="the one of the cluster first"),
        pytest.param("https://10.96.0.1", {"https_proxy": PROXY, "NO_PROXY": "10.0.0.0/8"}, None, None, id="excepted"),
        pytest.param("https://127.0.0.1:6443", {"https_proxy": PROXY}, PROXY, None, id="not to this machine itself"),
    ],
)
def test_a_proxy_is_used_where_it_is_named(
    server: str, environ: dict[str, str], named: str | None, proxy: str | None
) -> None:
    assert proxy_for(server, environ, named) == proxy


def test_a_socks_proxy_without_the_package_for_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "urllib3.contrib.socks", None)
    with pytest.raises(NotConnected, match="install the Python package pysocks") as raised:
        Client(Connection("https://c", "ns", lambda: None, proxy="socks5://ann:s3cret@proxy:1080"))
    assert "s3cret" not in str(raised.value)
