"""What Ballast asked of the API server during these tests.

Named so that only the uninstallation comes later: it takes the rights before the last replica has ended.
"""

from __future__ import annotations

import pytest

from examples.demo.installation import NAMESPACE, RELEASE
from tests.e2e.cluster import Cluster

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("account", [RELEASE, f"{RELEASE}-release"])
def test_it_may_do_all_that_it_asks_for(cluster: Cluster, account: str) -> None:
    assert cluster.testbed.requests_of(NAMESPACE, account)
    assert cluster.testbed.forbidden_requests_of(NAMESPACE, account) == []
