import ssl
from pathlib import Path

import pytest
from cryptography import x509

from tests.testbed.pki import KeyPair, Pki, create_pki


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return create_pki(tmp_path / "pki", control_hosts=["127.0.0.1"], node_hosts=["127.0.0.2", "node-1"])


def greets(server: KeyPair, *, client: KeyPair, server_trusts: Path, client_trusts: Path, host: str) -> bool:
    """Whether a mutually authenticated TLS handshake succeeds, in memory."""
    serving = server.server_context()
    serving.load_verify_locations(server_trusts)
    serving.verify_mode = ssl.CERT_REQUIRED
    asking = ssl.create_default_context(cafile=str(client_trusts))
    asking.load_cert_chain(client.certificate, client.key)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        asking.wrap_bio(to_client, to_server, server_hostname=host),
        serving.wrap_bio(to_server, to_client, server_side=True),
    ]
    try:
        for _ in range(4):
            for end in ends:
                advance(end)
    except ssl.SSLError:
        return False
    return all(end.getpeercert() for end in ends)


def advance(end: ssl.SSLObject) -> None:
    try:
        end.do_handshake()
    except ssl.SSLWantReadError:
        return


def test_a_kubelet_is_reached_by_the_api_server_and_by_nobody_else(pki: Pki) -> None:
    def reached_by(client: KeyPair) -> bool:
        return greets(
            pki.kubelet_serving,
            client=client,
            server_trusts=pki.kubelet_client_ca.files.certificate,
            client_trusts=pki.cluster_ca.files.certificate,
            host="127.0.0.2",
        )

    assert reached_by(pki.apiserver_to_kubelet)
    assert not reached_by(pki.admin)
    assert not reached_by(pki.kubelet)


@pytest.mark.parametrize(
    ("host", "accepted"), [("127.0.0.1", True), ("kubernetes.default.svc", True), ("other", False)]
)
def test_the_api_server_is_accepted_under_its_names_alone(pki: Pki, host: str, *, accepted: bool) -> None:
    ca = pki.cluster_ca.files.certificate

    assert greets(pki.apiserver, client=pki.admin, server_trusts=ca, client_trusts=ca, host=host) is accepted


def test_a_client_certificate_carries_its_user_and_groups(pki: Pki) -> None:
    subject = x509.load_pem_x509_certificate(pki.admin.certificate.read_bytes()).subject

    assert subject.rfc4514_string() == "CN=testbed:admin,O=system:masters"


def test_keys_are_for_their_owner_alone(pki: Pki, tmp_path: Path) -> None:
    modes = {key.name: key.stat().st_mode & 0o777 for key in (tmp_path / "pki").glob("*.key")}

    assert set(modes.values()) == {0o600}
    assert "service-accounts.key" in modes
