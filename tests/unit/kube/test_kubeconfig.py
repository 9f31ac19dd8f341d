from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import yaml

from ballast.kube.client import Client, Limits
from ballast.kube.connection import Connection, Tls
from ballast.kube.errors import NotConnected, Unavailable
from ballast.kube.kinds import NODE
from tests.apiserver import Answer, ApiServer, scripted
from tests.testbed.kubeconfig import by_certificate
from tests.testbed.pki import Pki

PLUGIN = """#!/bin/sh
echo '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "of a plugin"}}'
"""
LATER = 4102444800
PASSWORD = base64.b64encode(b"ann:s3cret").decode()


def without_padding(data: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(data).encode()).decode().rstrip("=")


ID_TOKEN = f"{without_padding({'alg': 'none'})}.{without_padding({'exp': LATER})}.c2ln"


PLUGINS = {"apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin"}


def write(folder: Path, *, cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None) -> Path:
    config = {
        "clusters": [{"name": "c", "cluster": cluster or {"server": "https://c.example"}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "analytics"}}],
        "current-context": "x",
    }
    path = folder / "config"
    path.write_text(yaml.safe_dump(config))
    return path


@pytest.mark.parametrize(
    ("user", "sent"),
    [
        pytest.param({}, None, id="nothing"),
        pytest.param({"token": "abc"}, "Bearer abc", id="a token"),
        pytest.param({"tokenFile": "token"}, "Bearer of a file", id="a token's file, next to the kubeconfig"),
        pytest.param({"token": "abc", "tokenFile": "token"}, "Bearer abc", id="a token rather than its file"),
        pytest.param({"username": "ann", "password": "s3cret"}, f"Basic {PASSWORD}", id="a password"),
        pytest.param({"username": "ann"}, None, id="a name without a password"),
        pytest.param(
            {"exec": PLUGINS},
            "Bearer of a plugin",
            id="an exec plugin",
        ),
        pytest.param(
            {"auth-provider": {"name": "oidc", "config": {"id-token": ID_TOKEN}}}, f"Bearer {ID_TOKEN}", id="OIDC"
        ),
    ],
)
def test_each_kind_of_user_is_known_by_its_header(user: dict[str, Any], sent: str | None, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("of a file\n")
    (tmp_path / "plugin").write_text(PLUGIN)
    (tmp_path / "plugin").chmod(0o700)
    with scripted(Answer()) as script:
        path = write(tmp_path, cluster={"server": f"{script.url}/"}, user=user)
        Client(Connection.from_kubeconfig(path)).get(NODE, "n")
    assert script.asked[0].headers.get("Authorization") == sent
    assert script.asked[0].path == "/api/v1/nodes/n"


def test_the_namespace_is_the_contexts_also_with_a_plugin(tmp_path: Path) -> None:
    (tmp_path / "plugin").write_text(PLUGIN)
    (tmp_path / "plugin").chmod(0o700)
    user = {"exec": PLUGINS}
    assert Connection.from_kubeconfig(write(tmp_path, user=user)).namespace == "analytics"


@pytest.mark.parametrize(
    "prints",
    ["", "sign in first", "null", "[]", "[" * 100_000, '{"apiVersion": "client.authentication.k8s.io/v1"}'],
    ids=["nothing", "words", "null", "a list", "a deep list", "no status"],
)
def test_a_plugin_that_gives_no_credentials_is_said_instead_of_asking_without_any(prints: str, tmp_path: Path) -> None:
    """The answer would be that system:anonymous may not do it, or that there is none."""
    (tmp_path / "printed").write_text(prints)
    user = {
        "exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "cat", "args": [f"{tmp_path}/printed"]}
    }
    with pytest.raises(NotConnected, match="exec plugin gave no credentials"):
        Connection.from_kubeconfig(write(tmp_path, user=user))


@pytest.mark.parametrize("user", [{"token": "abc"}, {"exec": PLUGINS}], ids=["a token", "an exec plugin"])
def test_requests_impersonate_the_user_that_the_file_names(user: dict[str, Any], tmp_path: Path) -> None:
    """As kubectl's do. Otherwise they would have all rights of the credentials."""
    (tmp_path / "plugin").write_text(PLUGIN)
    (tmp_path / "plugin").chmod(0o700)
    assert Connection.from_kubeconfig(write(tmp_path, user={**user, "as": "ann"})).impersonated == "ann"
    assert Connection.from_kubeconfig(write(tmp_path, user=user)).impersonated is None


def test_several_files_are_one(tmp_path: Path) -> None:
    names = "clusters", "users", "contexts"
    whole = yaml.safe_load(write(tmp_path, user={"token": "abc", "as": "ann"}).read_text())
    for name in names:
        rest: dict[str, Any] = {other: [] for other in names if other != name}
        (tmp_path / name).write_text(yaml.safe_dump({**rest, name: whole[name], "current-context": "x"}))
    found = Connection.from_kubeconfig(Path(":".join(str(tmp_path / name) for name in names)))
    assert (found.server, found.authorization(), found.namespace) == ("https://c.example", "Bearer abc", "analytics")
    assert found.impersonated == "ann"


@pytest.mark.parametrize(
    ("cluster", "tls"),
    [
        pytest.param({}, Tls(), id="the machine's own authorities"),
        pytest.param({"insecure-skip-tls-verify": True}, Tls(verify=False), id="unchecked"),
        pytest.param({"tls-server-name": "inner"}, Tls(server_name="inner"), id="under another name"),
        pytest.param({"certificate-authority": "ca.crt"}, Tls(ca_path="{folder}/ca.crt"), id="a file next to it"),
    ],
)
def test_the_cluster_says_how_its_certificate_is_checked(cluster: dict[str, Any], tls: Tls, tmp_path: Path) -> None:
    (tmp_path / "ca.crt").touch()
    found = Connection.from_kubeconfig(write(tmp_path, cluster={"server": "https://c.example", **cluster})).tls
    expected = tls.ca_path.format(folder=tmp_path) if tls.ca_path else None
    assert (found.verify, found.server_name, found.ca_path) == (tls.verify, tls.server_name, expected)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param({"current-context": None}, "no current context", id="no current context"),
        pytest.param({"current-context": "y"}, "no context named y", id="an unknown context"),
        pytest.param({"clusters": None}, "no cluster named c", id="an unknown cluster"),
        pytest.param({"users": ["u"]}, "no user named u", id="a user that is no object"),
        pytest.param({"clusters": [{"name": "c", "cluster": {}}]}, "no server", id="a cluster without a server"),
        pytest.param(
            {"users": [{"name": "u", "user": {"client-key": "gone.key"}}]}, "gone.key: there is no", id="a lost file"
        ),
        pytest.param(
            {"users": [{"name": "u", "user": {"tokenFile": "gone"}}]}, "No such file", id="a lost token's file"
        ),
        pytest.param(
            {"users": [{"name": "u", "user": {"client-key-data": "abc"}}]}, "not in base64", id="data that is none"
        ),
        pytest.param(
            {"users": [{"name": "u", "user": {"as": "ann", "as-groups": ["g"]}}]}, "has as-groups", id="groups to be in"
        ),
    ],
)
def test_a_broken_file_says_what_is_wrong_with_it(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    path = write(tmp_path)
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **change}))
    with pytest.raises(NotConnected, match=rf"connect with .*({words}).*\(set KUBECONFIG or --kubeconfig\)"):
        Connection.from_kubeconfig(path)


def test_a_file_that_is_not_there_is_named_once(tmp_path: Path) -> None:
    path = tmp_path / "absent"
    with pytest.raises(NotConnected) as caught:
        Connection.from_kubeconfig(path)
    assert str(caught.value).startswith(f"connect with {path}: No such file or directory (set KUBECONFIG")


@pytest.mark.parametrize("text", ["", "- a list", "{"])
def test_a_file_that_is_no_kubeconfig_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "config").write_text(text)
    with pytest.raises(NotConnected):
        Connection.from_kubeconfig(tmp_path / "config")


@pytest.fixture
def secure(pki: Pki) -> Iterator[ApiServer]:
    """A server that wants a client's certificate."""
    context = pki.apiserver.server_context()
    context.load_verify_locations(pki.cluster_ca.files.certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    with scripted(Answer(body={"metadata": {"name": "n"}}), tls=context) as script:
        yield script


def test_a_client_certificate_in_the_file_is_shown_and_the_servers_checked(
    secure: ApiServer, pki: Pki, tmp_path: Path
) -> None:
    text = by_certificate(server=secure.url, ca=pki.cluster_ca.files.certificate, client=pki.admin)
    (tmp_path / "config").write_text(text)
    connection = Connection.from_kubeconfig(tmp_path / "config")
    assert Client(connection).get(NODE, "n") == {"metadata": {"name": "n"}}
    assert Path(str(connection.tls.key_path)).parent.stat().st_mode & 0o077 == 0


def test_keys_that_the_file_holds_are_in_private_files_until_the_process_ends(pki: Pki, tmp_path: Path) -> None:
    at_end: list[Callable[[], object]] = []
    text = by_certificate(server="https://127.0.0.1:1", ca=pki.cluster_ca.files.certificate, client=pki.admin)
    (tmp_path / "config").write_text(text)
    with patch("atexit.register", lambda work, *each, **more: at_end.append(partial(work, *each, **more))):
        tls = Connection.from_kubeconfig(tmp_path / "config").tls
    paths = [Path(str(path)) for path in (tls.ca_path, tls.certificate_path, tls.key_path)]
    assert [path.read_bytes() for path in paths] == [
        each.read_bytes() for each in (pki.cluster_ca.files.certificate, pki.admin.certificate, pki.admin.key)
    ]
    assert all(path.parent.name.startswith("ballast-") for path in paths), "it can be told whose they are"
    for remove in at_end + at_end:
        remove()
    assert not any(path.parent.exists() for path in paths)


@pytest.mark.parametrize(
    ("name", "passes"), [("kubernetes.default.svc", True), ("elsewhere.example", False)], ids=["its own", "another's"]
)
def test_the_name_that_the_file_expects_is_looked_for_in_the_servers_certificate(
    name: str, secure: ApiServer, pki: Pki, tmp_path: Path, *, passes: bool
) -> None:
    text = by_certificate(server=secure.url, ca=pki.cluster_ca.files.certificate, client=pki.admin)
    config = yaml.safe_load(text)
    config["clusters"][0]["cluster"]["tls-server-name"] = name
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    client = Client(Connection.from_kubeconfig(tmp_path / "config"), Limits(attempts=1))
    with nullcontext() if passes else pytest.raises(Unavailable, match=r"certificate is not trusted: .*elsewhere"):
        client.get(NODE, "n")
    assert len(secure.asked) == passes


@pytest.mark.parametrize("client", ["admin", "etcd"])
def test_no_request_passes_with_the_wrong_certificates(
    client: str, secure: ApiServer, pki: Pki, tmp_path: Path
) -> None:
    wrong_server = client == "admin"
    authority = pki.etcd_ca if wrong_server else pki.cluster_ca
    text = by_certificate(server=secure.url, ca=authority.files.certificate, client=getattr(pki, client))
    (tmp_path / "config").write_text(text)
    connection = Connection.from_kubeconfig(tmp_path / "config")
    with pytest.raises(Unavailable, match="no answer from https://127"):
        Client(connection, Limits(attempts=1)).get(NODE, "n")
    assert secure.asked == []
