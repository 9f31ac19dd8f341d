"""How the API server is reached: from inside a pod, or by a kubeconfig file."""

from __future__ import annotations

import ipaddress
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import urllib3

from ballast.deadline import with_deadlines
from ballast.kube.errors import NotConnected

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
DEFAULT_KUBECONFIG = Path(".kube", "config")
_TOKEN_PERIOD_SECONDS = 60.0

Authorization = Callable[[], str | None]
"""Returns the value of the Authorization header, such as `Bearer abc`; None if there is none. May raise OSError."""


@dataclass(frozen=True, slots=True)
class Tls:
    """Files, since these may be rotated: each new connection reads them."""

    verify: bool = True
    ca_path: str | None = None
    """If unset, the machine's own authorities."""
    certificate_path: str | None = None
    key_path: str | None = None
    server_name: str | None = None
    """Expected in the server's certificate. Default: the host's name."""


@dataclass(frozen=True, slots=True)
class Connection:
    """The API server's address, and the credentials to use there.

    Another HTTP client, such as kopf's, needs the same: `server`, `tls`, `proxy`, and `authorization()`, which is to be
    called again at each login, because tokens are rotated.
    """

    server: str
    namespace: str
    """The pod's own, or that of the kubeconfig's context."""
    authorization: Authorization
    tls: Tls = field(default_factory=Tls)
    proxy: str | None = None
    impersonated: str | None = None
    """The user that requests impersonate. The user of the credentials needs the right to do so."""

    @property
    def shown(self) -> str:
        """The address without a password."""
        parts = urlsplit(self.server)
        return self.server.replace(parts.netloc, parts.netloc.rpartition("@")[2], 1)

    @classmethod
    def from_pod(
        cls,
        environ: Mapping[str, str],
        *,
        service_account: Path = SERVICE_ACCOUNT,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> Connection:
        """As the pod's ServiceAccount; its token is read again every minute, since the kubelet rotates it."""
        host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
        if not host or not port:
            raise _no_pod("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
        authority = service_account / "ca.crt"
        try:
            token = TokenFile(service_account / "token", monotonic)
            if not authority.read_text():
                raise _no_pod(f"{authority} is empty")
        except OSError as error:
            raise _no_pod(str(error)) from error
        namespace = service_account / "namespace"
        server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
        return cls(
            server,
            namespace.read_text().strip() if namespace.is_file() else "default",
            token,
            Tls(ca_path=str(authority)),
            proxy_for(server, environ),
        )

    @classmethod
    def from_kubeconfig(
        cls, path: Path, *, context: str | None = None, environ: Mapping[str, str] = os.environ
    ) -> Connection:
        """As kubectl would with this file and context (the file's current one by default)."""
        from ballast.kube.kubeconfig import connection  # noqa: PLC0415 -- pods need no YAML

        return connection(path, context, environ)

    @classmethod
    def found(
        cls,
        environ: Mapping[str, str],
        *,
        kubeconfig: Path | None = None,
        context: str | None = None,
        service_account: Path = SERVICE_ACCOUNT,
    ) -> Connection:
        """The file that was named, else $KUBECONFIG, else from inside a pod, else the home directory's file."""
        named = kubeconfig or (Path(environ["KUBECONFIG"]) if environ.get("KUBECONFIG") else None)
        if named is None and environ.get("KUBERNETES_SERVICE_HOST") and (service_account / "token").is_file():
            return cls.from_pod(environ, service_account=service_account)
        path = named or Path(environ.get("HOME", "~")) / DEFAULT_KUBECONFIG
        return cls.from_kubeconfig(path, context=context, environ=environ)

    def pool(self, connections: int) -> urllib3.PoolManager:
        """Keeps so many connections open. It repeats nothing by itself and follows no redirect.

        Raises NotConnected for a SOCKS proxy without the package that speaks to one.
        """
        tls = self.tls
        options: dict[str, Any] = {
            "maxsize": connections,
            "retries": False,
            "cert_reqs": "CERT_REQUIRED" if tls.verify else "CERT_NONE",
            "ca_certs": tls.ca_path,
            "cert_file": tls.certificate_path,
            "key_file": tls.key_path,
        }
        if tls.server_name:
            options["server_hostname"] = tls.server_name
        if self.proxy is None:
            return with_deadlines(urllib3.PoolManager(**options))
        if urlsplit(self.proxy).scheme.startswith("socks"):
            try:
                from urllib3.contrib.socks import SOCKSProxyManager  # noqa: PLC0415 -- it needs its own package
            except ImportError as error:
                raise NotConnected("connect", "its proxy speaks SOCKS: install the Python package pysocks") from error
            return with_deadlines(SOCKSProxyManager(self.proxy, **options))
        return with_deadlines(urllib3.ProxyManager(self.proxy, **options))


def close(pool: urllib3.PoolManager) -> None:
    """Close the idle connections now; urllib3 leaves that to the collection of garbage."""
    for key in pool.pools.keys():  # noqa: SIM118 -- it can't be iterated itself
        each = pool.pools.get(key)
        if each is not None:
            each.close()
    pool.clear()


class TokenFile:
    """The Authorization of a token in a file, read at most once a minute."""

    def __init__(self, path: Path, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._path, self._monotonic = path, monotonic
        self._header: str | None = None
        self._read()

    def __call__(self) -> str | None:
        if self._monotonic() - self._read_at >= _TOKEN_PERIOD_SECONDS:
            self._read()
        return self._header

    def _read(self) -> None:
        text = self._path.read_text().strip()
        if text:  # the kubelet may be writing it: then the old one is good for a while yet
            self._header, self._read_at = f"Bearer {text}", self._monotonic()
        elif self._header is None:
            raise OSError(f"{self._path} is empty")


def proxy_for(server: str, environ: Mapping[str, str], named: str | None = None) -> str | None:
    """The proxy between here and the server: the one that is named for it, else the environment's."""
    address = urlsplit(server)
    proxy = named or _variable(environ, f"{address.scheme}_proxy") or _variable(environ, "all_proxy")
    if not proxy or _is_loopback(address.hostname or ""):
        return None
    from kubernetes.client.rest import should_bypass_proxies  # noqa: PLC0415 -- takes half a second, and proxies are rare

    return None if should_bypass_proxies(server, _variable(environ, "no_proxy") or "") else proxy


def _variable(environ: Mapping[str, str], name: str) -> str | None:
    return environ.get(name) or environ.get(name.upper())


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _no_pod(why: str) -> NotConnected:
    return NotConnected("connect from inside the cluster", why)
