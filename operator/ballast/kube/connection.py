"""How the API server is reached: from inside a pod, or by a kubeconfig file."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlparse

from kubernetes.client import Configuration
from kubernetes.config import ConfigException, list_kube_config_contexts
from kubernetes.config.incluster_config import InClusterConfigLoader
from kubernetes.config.kube_config import load_kube_config

from ballast.kube.errors import NotConnected

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
DEFAULT_KUBECONFIG = Path(".kube", "config")
_TOKEN_PERIOD_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Connection:
    """Where and as whom. `configuration` is the client library's own and is used by Client alone."""

    configuration: Configuration
    server: str
    namespace: str
    """The pod's own, or that of the kubeconfig's context."""

    @classmethod
    def from_pod(
        cls,
        environ: Mapping[str, str],
        *,
        service_account: Path = SERVICE_ACCOUNT,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> Connection:
        """As the pod's ServiceAccount; its token is read again every minute, since the kubelet rotates it."""
        configuration = Configuration()
        try:
            loader = InClusterConfigLoader(  # type: ignore[no-untyped-call]
                token_filename=str(service_account / "token"),
                cert_filename=str(service_account / "ca.crt"),
                try_refresh_token=False,
                environ=environ,
            )
            loader.load_and_set(configuration)  # type: ignore[no-untyped-call]
        except (ConfigException, OSError) as error:
            raise NotConnected("connect from inside the cluster", str(error)) from error
        token = _Token(service_account / "token", monotonic)
        token.read(configuration)
        configuration.refresh_api_key_hook = token.refresh  # type: ignore[assignment]
        namespace = service_account / "namespace"
        return _ready(configuration, namespace.read_text().strip() if namespace.is_file() else "default")

    @classmethod
    def from_kubeconfig(cls, path: Path, *, context: str | None = None) -> Connection:
        """As kubectl would with this file and context (the file's current one by default)."""
        configuration = Configuration()
        try:
            load_kube_config(  # type: ignore[no-untyped-call]
                str(path), context, configuration, persist_config=False
            )
        except (ConfigException, OSError) as error:
            raise NotConnected(f"connect by {path}", f"{error} (set KUBECONFIG or --kubeconfig)") from error
        return _ready(configuration, _context_namespace(path, context))

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
        if named is not None:
            return cls.from_kubeconfig(named, context=context)
        if environ.get("KUBERNETES_SERVICE_HOST") and (service_account / "token").is_file():
            return cls.from_pod(environ, service_account=service_account)
        return cls.from_kubeconfig(Path(environ.get("HOME", "~")) / DEFAULT_KUBECONFIG, context=context)


class _Token:
    """A projected token's file, read at most once a minute."""

    def __init__(self, path: Path, monotonic: Callable[[], float]) -> None:
        self._path, self._monotonic = path, monotonic
        self._read_at = monotonic()

    def refresh(self, configuration: Configuration) -> None:
        if self._monotonic() - self._read_at >= _TOKEN_PERIOD_SECONDS:
            self.read(configuration)

    def read(self, configuration: Configuration) -> None:
        text = self._path.read_text().strip()
        if text:  # the kubelet may be writing it: then the old one is good for a while yet
            configuration.api_key["BearerToken"] = f"Bearer {text}"
            self._read_at = self._monotonic()


def _ready(configuration: Configuration, namespace: str) -> Connection:
    if _is_loopback(urlparse(configuration.host).hostname or ""):
        configuration.proxy = None
    configuration.retries = False
    return Connection(configuration, configuration.host, namespace)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _context_namespace(path: Path, context: str | None) -> str:
    contexts, current = list_kube_config_contexts(str(path))  # type: ignore[no-untyped-call]
    chosen = next((c for c in contexts if c["name"] == context), current)
    return str((chosen.get("context") or {}).get("namespace") or "default")
