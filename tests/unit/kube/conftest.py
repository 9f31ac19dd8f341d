from __future__ import annotations

import pytest

from tests.testbed.pki import Pki, create_pki


@pytest.fixture(scope="session")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    folder = tmp_path_factory.mktemp("tls") / "pki"
    return create_pki(folder, control_hosts=["127.0.0.1"], node_hosts=["127.0.0.1"])
