"""etcd, kube-apiserver, kube-controller-manager and kube-scheduler on loopback, with TLS and RBAC."""

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.testbed import kubeconfig
from tests.testbed.apiserver import ApiServer
from tests.testbed.audit import audit_arguments
from tests.testbed.instance import free_port
from tests.testbed.pki import KeyPair, Pki
from tests.testbed.process import Running, Supervisor

SERVICE_NETWORK = "10.96.0.0/16"
SERVICE_ADDRESS = "10.96.0.1"
ISSUER = "https://kubernetes.default.svc"
READY_TIMEOUT_SECONDS = 90.0
CLIENT_QPS = 5000  # the defaults (20 and 50 requests a second) would measure the throttle, not the scheduler


@dataclass(frozen=True, slots=True)
class Ports:
    """Where each part listens, all at the control plane's address."""

    etcd: int
    etcd_peers: int
    apiserver: int
    controller_manager: int
    scheduler: int


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """A started control plane."""

    url: str
    api: ApiServer
    admin_kubeconfig: Path
    kubelet_kubeconfig: Path


@dataclass(frozen=True, slots=True)
class ControlPlaneSetup:
    """What it takes to start one."""

    supervisor: Supervisor
    binaries: Mapping[str, Path]
    pki: Pki
    address: str
    scheduler: bool
    node_grace_seconds: int
    apiserver_arguments: Sequence[str]
    scheduler_arguments: Sequence[str]
    scheduler_profiles: Sequence[Mapping[str, Any]]

    @property
    def folder(self) -> Path:
        return self.supervisor.instance.folder

    def start(self) -> ControlPlane:
        """Return when every part reports ready and the default ServiceAccount exists."""
        ports = _ports(self.address)
        plane = self._plane(ports)
        etcd = self._start_etcd(ports)
        etcd.wait_for(lambda: _listens(self.address, ports.etcd), what="listening")
        apiserver = self._start_apiserver(ports)
        apiserver.wait_for(lambda: plane.api.answers("/readyz"), what="ready", timeout_seconds=READY_TIMEOUT_SECONDS)
        manager = self._start_controller_manager(ports, plane)
        if self.scheduler:
            self._await_healthy(self._start_scheduler(ports, plane), ports.scheduler)
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        manager.wait_for(
            lambda: plane.api.answers(account),
            what="the default ServiceAccount",
            timeout_seconds=READY_TIMEOUT_SECONDS,
        )
        return plane

    def _plane(self, ports: Ports) -> ControlPlane:
        url = f"https://{self.address}:{ports.apiserver}"
        return ControlPlane(
            url=url,
            api=ApiServer(url, self.pki.cluster_ca.files.certificate, self.pki.admin),
            admin_kubeconfig=self._kubeconfig("admin", url, self.pki.admin),
            kubelet_kubeconfig=self._kubeconfig("kubelet", url, self.pki.kubelet),
        )

    def _kubeconfig(self, name: str, url: str, client: KeyPair) -> Path:
        ca = self.pki.cluster_ca.files.certificate
        text = kubeconfig.by_certificate(server=url, ca=ca, client=client)
        return kubeconfig.write_private(self.folder / f"{name}.kubeconfig", text)

    def _start_etcd(self, ports: Ports) -> Running:
        client, peers = (f"https://{self.address}:{port}" for port in (ports.etcd, ports.etcd_peers))
        flags = {
            "data-dir": self.folder / "etcd",
            "listen-client-urls": client,
            "advertise-client-urls": client,
            "listen-peer-urls": peers,
            "initial-advertise-peer-urls": peers,
            "initial-cluster": f"default={peers}",
            "client-cert-auth": "true",
            "trusted-ca-file": self.pki.etcd_ca.files.certificate,
            "cert-file": self.pki.etcd.certificate,
            "key-file": self.pki.etcd.key,
            "peer-client-cert-auth": "true",
            "peer-trusted-ca-file": self.pki.etcd_ca.files.certificate,
            "peer-cert-file": self.pki.etcd.certificate,
            "peer-key-file": self.pki.etcd.key,
            "unsafe-no-fsync": "true",
            "log-level": "warn",
        }
        return self.supervisor.start("etcd", [self.binaries["etcd"], *_arguments(flags)])

    def _start_apiserver(self, ports: Ports) -> Running:
        flags = {
            **self._apiserver_addresses(ports),
            **self._apiserver_identities(),
            "authorization-mode": "RBAC",
            "service-cluster-ip-range": SERVICE_NETWORK,
            "endpoint-reconciler-type": "none",  # a loopback address can't be a Service's endpoint
            "allow-privileged": "true",
            "kubelet-preferred-address-types": "InternalIP",
        }
        audit = audit_arguments(self.folder / "audit.log")
        command = [self.binaries["kube-apiserver"], *_arguments(flags), *audit, *self.apiserver_arguments]
        return self.supervisor.start("kube-apiserver", command)

    def _apiserver_addresses(self, ports: Ports) -> dict[str, object]:
        return {
            "bind-address": self.address,
            "advertise-address": self.address,
            "secure-port": ports.apiserver,
            "etcd-servers": f"https://{self.address}:{ports.etcd}",
            "etcd-cafile": self.pki.etcd_ca.files.certificate,
            "etcd-certfile": self.pki.apiserver_to_etcd.certificate,
            "etcd-keyfile": self.pki.apiserver_to_etcd.key,
            "cert-dir": self.folder / "pki",
        }

    def _apiserver_identities(self) -> dict[str, object]:
        pki = self.pki
        return {
            "client-ca-file": pki.cluster_ca.files.certificate,
            "tls-cert-file": pki.apiserver.certificate,
            "tls-private-key-file": pki.apiserver.key,
            "kubelet-certificate-authority": pki.cluster_ca.files.certificate,
            "kubelet-client-certificate": pki.apiserver_to_kubelet.certificate,
            "kubelet-client-key": pki.apiserver_to_kubelet.key,
            "proxy-client-cert-file": pki.front_proxy.certificate,
            "proxy-client-key-file": pki.front_proxy.key,
            "requestheader-client-ca-file": pki.front_proxy_ca.files.certificate,
            "requestheader-allowed-names": "front-proxy-client",
            "requestheader-username-headers": "X-Remote-User",
            "requestheader-group-headers": "X-Remote-Group",
            "requestheader-extra-headers-prefix": "X-Remote-Extra-",
            "service-account-issuer": ISSUER,
            "service-account-key-file": pki.service_accounts,
            "service-account-signing-key-file": pki.service_accounts,
        }

    def _start_controller_manager(self, ports: Ports, plane: ControlPlane) -> Running:
        pki = self.pki
        flags = {
            **self._manager_flags("controller-manager", plane, pki.controller_manager),
            "secure-port": ports.controller_manager,
            "leader-elect": "false",
            "cluster-signing-cert-file": pki.cluster_ca.files.certificate,
            "cluster-signing-key-file": pki.cluster_ca.files.key,
            "root-ca-file": pki.cluster_ca.files.certificate,
            "service-account-private-key-file": pki.service_accounts,
            "use-service-account-credentials": "true",
            "node-monitor-grace-period": f"{self.node_grace_seconds}s",
            # A quota that is older than its kind's discovery counts nothing before the next of these.
            "resource-quota-sync-period": "5s",
            "kube-api-qps": CLIENT_QPS,
            "kube-api-burst": CLIENT_QPS,
        }
        name = "kube-controller-manager"
        return self.supervisor.start(name, [self.binaries[name], *_arguments(flags)])

    def _start_scheduler(self, ports: Ports, plane: ControlPlane) -> Running:
        flags = {
            **self._manager_flags("scheduler", plane, self.pki.scheduler),
            "secure-port": ports.scheduler,
            "config": self._scheduler_config(),
        }
        del flags["kubeconfig"]  # with a config file it is named there
        name = "kube-scheduler"
        command = [self.binaries[name], *_arguments(flags), *self.scheduler_arguments]
        return self.supervisor.start(name, command)

    def _scheduler_config(self) -> Path:
        config: dict[str, Any] = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {
                "kubeconfig": str(self.folder / "scheduler.kubeconfig"),
                "qps": CLIENT_QPS,
                "burst": CLIENT_QPS,
            },
        }
        if self.scheduler_profiles:
            config["profiles"] = [dict(profile) for profile in self.scheduler_profiles]
        path = self.folder / "scheduler.yaml"
        path.write_text(yaml.safe_dump(config))
        return path

    def _manager_flags(self, name: str, plane: ControlPlane, identity: KeyPair) -> dict[str, object]:
        file = self._kubeconfig(name, plane.url, identity)
        return {
            "bind-address": self.address,
            "kubeconfig": file,
            "authentication-kubeconfig": file,
            "authorization-kubeconfig": file,
            "client-ca-file": self.pki.cluster_ca.files.certificate,
            "requestheader-client-ca-file": self.pki.front_proxy_ca.files.certificate,
            "tls-cert-file": identity.certificate,
            "tls-private-key-file": identity.key,
        }

    def _await_healthy(self, part: Running, port: int) -> None:
        probe = ApiServer(f"https://{self.address}:{port}", self.pki.cluster_ca.files.certificate, self.pki.admin)
        part.wait_for(lambda: probe.answers("/readyz"), what="ready", timeout_seconds=READY_TIMEOUT_SECONDS)


def _ports(address: str) -> Ports:
    return Ports(
        etcd=free_port(address, preferred=2379),
        etcd_peers=free_port(address, preferred=2380),
        apiserver=free_port(address, preferred=6443),
        controller_manager=free_port(address, preferred=10257),
        scheduler=free_port(address, preferred=10259),
    )


def _arguments(flags: Mapping[str, object]) -> list[str | Path]:
    return [f"--{name}={value}" for name, value in flags.items()]


def _listens(address: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((address, port)) == 0
