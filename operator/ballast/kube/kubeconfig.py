"""A kubeconfig file: which server, and as which user.

Read here as long as it is one file with certificates, tokens or a password. For several files, exec plugins and auth
providers (OIDC) the client library is asked, which takes half a second to load.
"""

from __future__ import annotations

import atexit
import base64
import binascii
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from ballast.files import in_plain_words
from ballast.kube.connection import Authorization, Connection, Tls, TokenFile, proxy_for
from ballast.kube.document import JSON
from ballast.kube.errors import NotConnected


def connection(path: Path, context: str | None, environ: Mapping[str, str]) -> Connection:
    """Raises NotConnected with what is wrong with the file, or with what to set."""
    try:
        chosen = _chosen(path, context)
        if os.pathsep in str(path):
            return replace(_from_library(path, context, environ), impersonated=chosen.impersonated())
        if chosen.user.keys() & {"exec", "auth-provider"}:
            return _with_credentials(_from_library(path, context, environ), chosen)
        return chosen.connection(environ)
    except (OSError, yaml.YAMLError, ValueError, _Broken) as error:
        words = _in_plain_words(error, path)
        raise NotConnected(f"connect with {path}", f"{words} (set KUBECONFIG or --kubeconfig)") from error


def _with_credentials(found: Connection, chosen: _Chosen) -> Connection:
    if "exec" in chosen.user and found.authorization() is None and found.tls.certificate_path is None:
        # The library logs why, and would ask without credentials.
        raise _Broken("its exec plugin gave no credentials: run its command by itself")
    return replace(found, impersonated=chosen.impersonated())


def _in_plain_words(error: Exception, path: Path) -> str:
    """With the other file's name, where the kubeconfig names one that can't be read."""
    if isinstance(error, _Broken):
        return str(error)
    if isinstance(error, binascii.Error):
        return "a certificate or key in the file is not in base64"
    other = f"{error.filename}: " if isinstance(error, OSError) and str(error.filename or path) != str(path) else ""
    return f"{other}{in_plain_words(error)}"


class _Broken(Exception):  # noqa: N818 -- becomes NotConnected above
    """Something is missing in the file."""


@dataclass(frozen=True, slots=True)
class _Chosen:
    """What a context leads to."""

    cluster: JSON
    user: JSON
    namespace: str
    folder: Path
    """Paths in the file are relative to it."""

    def connection(self, environ: Mapping[str, str]) -> Connection:
        server = str(self.cluster.get("server") or "").rstrip("/")
        if not server:
            raise _Broken("the context's cluster has no server")
        tls = Tls(
            verify=not self.cluster.get("insecure-skip-tls-verify"),
            ca_path=self._file(self.cluster, "certificate-authority"),
            certificate_path=self._file(self.user, "client-certificate"),
            key_path=self._file(self.user, "client-key"),
            server_name=self.cluster.get("tls-server-name"),
        )
        proxy = proxy_for(server, environ, self.cluster.get("proxy-url"))
        return Connection(server, self.namespace, self._authorization(), tls, proxy, self.impersonated())

    def impersonated(self) -> str | None:
        """The user of the field `as`. Others that go with it are refused: without them requests would have more rights,
        or fewer, than kubectl's.
        """
        for key in ("as-groups", "as-uid", "as-user-extra"):
            if self.user.get(key):
                raise _Broken(f"the context's user has {key}, which is not supported: impersonate by `as` alone")
        return self.user.get("as") or None

    def _authorization(self) -> Authorization:
        user = self.user
        if user.get("token"):
            return _always(f"Bearer {user['token']}")
        if user.get("tokenFile"):
            return TokenFile(self.folder / user["tokenFile"])
        if user.get("username") and user.get("password"):
            pair = f"{user['username']}:{user['password']}".encode()
            return _always(f"Basic {base64.b64encode(pair).decode()}")
        return _always(None)

    def _file(self, entry: JSON, key: str) -> str | None:
        """The file that the entry names, or one that holds its data."""
        if entry.get(f"{key}-data"):
            return _private_file(base64.b64decode(entry[f"{key}-data"]), key)
        if not entry.get(key):
            return None
        path = self.folder / entry[key]
        if not path.is_file():
            raise _Broken(f"{path}: there is no such file")
        return str(path)


def _chosen(path: Path, context: str | None) -> _Chosen:
    path = path.expanduser()
    content = _merged(path) if os.pathsep in str(path) else yaml.safe_load(path.read_text())
    if not isinstance(content, dict):
        raise _Broken("the file holds no kubeconfig")
    name = context or content.get("current-context")
    if not name:
        raise _Broken("the file has no current context")
    place = _named(content, "context", name)
    user = _named(content, "user", place["user"]) if place.get("user") else {}
    cluster = _named(content, "cluster", place.get("cluster"))
    return _Chosen(cluster, user, place.get("namespace") or "default", path.absolute().parent)


def _merged(paths: Path) -> JSON:
    from kubernetes.config import ConfigException  # noqa: PLC0415 -- see above
    from kubernetes.config.kube_config import KubeConfigMerger  # noqa: PLC0415

    try:
        merged = KubeConfigMerger(str(paths)).config  # type: ignore[no-untyped-call]
    except ConfigException as error:
        raise _Broken(str(error)) from error
    if merged is None:
        raise _Broken("none of the files is there")
    entries = {kind: [each.value for each in merged.value[kind]] for kind in ("clusters", "users", "contexts")}
    return {**merged.value, **entries}


def _named(content: JSON, kind: str, name: Any) -> JSON:
    for each in content.get(f"{kind}s") or ():
        if isinstance(each, dict) and each.get("name") == name and isinstance(each.get(kind) or {}, dict):
            return each.get(kind) or {}
    raise _Broken(f"the file has no {kind} named {name}")


def _always(header: str | None) -> Authorization:
    return lambda: header


def _private_file(data: bytes, name: str) -> str:
    """Readable by this user alone, removed when the process ends: TLS takes certificates from files only."""
    folder = tempfile.mkdtemp(prefix="ballast-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = Path(folder, name)
    path.write_bytes(data)
    return str(path)


def _from_library(path: Path, context: str | None, environ: Mapping[str, str]) -> Connection:
    from kubernetes.client import Configuration  # noqa: PLC0415 -- see above
    from kubernetes.config import ConfigException, list_kube_config_contexts, load_kube_config  # noqa: PLC0415

    configuration = Configuration()
    try:
        load_kube_config(str(path), context, configuration, persist_config=False)  # type: ignore[no-untyped-call]
        contexts, current = list_kube_config_contexts(str(path))  # type: ignore[no-untyped-call]
    except ConfigException as error:
        raise _Broken(str(error)) from error
    place = next((each for each in contexts if each["name"] == context), current)["context"]
    return Connection(
        configuration.host,
        place.get("namespace") or "default",
        # Runs the plugin again when its credentials have expired.
        lambda: configuration.get_api_key_with_prefix("BearerToken"),
        Tls(
            verify=configuration.verify_ssl,
            ca_path=configuration.ssl_ca_cert,
            certificate_path=configuration.cert_file,
            key_path=configuration.key_file,
            server_name=configuration.tls_server_name,
        ),
        proxy_for(configuration.host, environ, configuration.proxy),
    )
