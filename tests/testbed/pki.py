"""The certificates of one testbed: authorities of its own, made on the spot, so that all TLS is verified."""

import datetime as dt
import ipaddress
import ssl
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALIDITY = dt.timedelta(days=30)
CLOCK_SKEW = dt.timedelta(minutes=5)
SERVICE_NAMES = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate with its private key, as PEM files."""

    certificate: Path
    key: Path

    def server_context(self) -> ssl.SSLContext:
        """Of a server that presents it, and asks for no certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        return context


@dataclass(frozen=True, slots=True)
class Authority:
    """Signs the certificates of one circle of trust."""

    folder: Path
    name: str
    signing_key: ec.EllipticCurvePrivateKey
    root: x509.Certificate

    @property
    def files(self) -> KeyPair:
        return KeyPair(self.folder / f"{self.name}.crt", self.folder / f"{self.name}.key")

    def issue(
        self,
        file_name: str,
        *,
        common_name: str,
        organizations: Iterable[str] = (),
        hosts: Sequence[str] = (),
    ) -> KeyPair:
        """A client certificate, and a server's too when it names `hosts` (DNS names or IP addresses)."""
        key = ec.generate_private_key(ec.SECP256R1())
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH, *([ExtendedKeyUsageOID.SERVER_AUTH] if hosts else [])]
        builder = (
            _builder(_subject(common_name, organizations), key, issuer=self.root.subject)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.signing_key.public_key()), critical=False
            )
        )
        if hosts:
            names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
            builder = builder.add_extension(names, critical=False)
        return _write(self.folder, file_name, key, builder.sign(self.signing_key, hashes.SHA256()))


@dataclass(frozen=True, slots=True)
class Pki:
    """All the certificates and keys of a testbed, by who uses them."""

    cluster_ca: Authority
    front_proxy_ca: Authority
    kubelet_client_ca: Authority
    etcd: KeyPair
    apiserver: KeyPair
    apiserver_to_etcd: KeyPair
    apiserver_to_kubelet: KeyPair
    front_proxy: KeyPair
    controller_manager: KeyPair
    scheduler: KeyPair
    kubelet: KeyPair
    kubelet_serving: KeyPair
    admin: KeyPair
    service_accounts: Path
    etcd_ca: Authority


def create_pki(folder: Path, *, control_hosts: Sequence[str], node_hosts: Sequence[str]) -> Pki:
    """Make everything below `folder`; servers are known as `control_hosts`, kubelets as `node_hosts`."""
    folder.mkdir(mode=0o700)
    cluster = create_authority(folder, "ca")
    etcd_ca = create_authority(folder, "etcd-ca")
    front_proxy_ca = create_authority(folder, "front-proxy-ca")
    kubelet_client_ca = create_authority(folder, "kubelet-client-ca")
    manager, scheduler = "system:kube-controller-manager", "system:kube-scheduler"
    return Pki(
        cluster_ca=cluster,
        etcd_ca=etcd_ca,
        front_proxy_ca=front_proxy_ca,
        kubelet_client_ca=kubelet_client_ca,
        etcd=etcd_ca.issue("etcd", common_name="etcd", hosts=control_hosts),
        apiserver_to_etcd=etcd_ca.issue("apiserver-to-etcd", common_name="kube-apiserver"),
        apiserver=cluster.issue("apiserver", common_name="kube-apiserver", hosts=[*control_hosts, *SERVICE_NAMES]),
        apiserver_to_kubelet=kubelet_client_ca.issue(
            "apiserver-to-kubelet", common_name="kube-apiserver-kubelet-client"
        ),
        front_proxy=front_proxy_ca.issue("front-proxy", common_name="front-proxy-client"),
        controller_manager=cluster.issue("controller-manager", common_name=manager, hosts=control_hosts),
        scheduler=cluster.issue("scheduler", common_name=scheduler, hosts=control_hosts),
        kubelet=cluster.issue("kubelet", common_name="testbed:kubelet", organizations=["testbed:kubelets"]),
        kubelet_serving=cluster.issue("kubelet-serving", common_name="kubelet", hosts=[*node_hosts, "localhost"]),
        admin=cluster.issue("admin", common_name="testbed:admin", organizations=["system:masters"]),
        service_accounts=_bare_key(folder / "service-accounts.key"),
    )


def create_authority(folder: Path, name: str) -> Authority:
    """An authority that only those trust who are given its certificate; its files are in `folder`."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject(f"ballast-testbed-{name}", ())
    builder = _builder(subject, key, issuer=subject).add_extension(
        x509.BasicConstraints(ca=True, path_length=0), critical=True
    )
    root = builder.sign(key, hashes.SHA256())
    _write(folder, name, key, root)
    return Authority(folder, name, key, root)


def _builder(subject: x509.Name, key: ec.EllipticCurvePrivateKey, *, issuer: x509.Name) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + VALIDITY)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _subject(common_name: str, organizations: Iterable[str]) -> x509.Name:
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in organizations]
    return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _write(folder: Path, name: str, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> KeyPair:
    files = KeyPair(folder / f"{name}.crt", folder / f"{name}.key")
    files.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    _write_key(files.key, key)
    return files


def _bare_key(path: Path) -> Path:
    _write_key(path, ec.generate_private_key(ec.SECP256R1()))
    return path


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
