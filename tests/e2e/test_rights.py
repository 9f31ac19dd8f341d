"""What Ballast asked of the API server during these tests. Named so that it comes last."""

from __future__ import annotations

import pytest

from examples.demo.installation import NAMESPACE, RELEASE
from tests.e2e.cluster import Cluster
from tests.testbed.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.soak]

_A_TURN_OF_THE_CRON_JOB_SECONDS = 120.0
"""It comes every minute."""


@pytest.mark.parametrize("account", [RELEASE, f"{RELEASE}-release"])
def test_it_may_do_all_that_it_asks_for(cluster: Cluster, account: str) -> None:
    wait_until(
        lambda: bool(cluster.testbed.requests_of(NAMESPACE, account)),
        what=f"{account} has asked for something",
        timeout_seconds=_A_TURN_OF_THE_CRON_JOB_SECONDS,
    )
    assert cluster.testbed.forbidden_requests_of(NAMESPACE, account) == []
