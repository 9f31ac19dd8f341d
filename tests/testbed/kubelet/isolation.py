"""A pod's own address, its way to the API server and its traffic, without its own network namespace."""

from __future__ import annotations

import logging
from pathlib import Path

from tests.testbed.kubelet import binding
from tests.testbed.kubelet.bpf import UnsupportedError
from tests.testbed.kubelet.traffic import Counters

log = logging.getLogger(__name__)
Endpoint = tuple[str, int]


def isolate(cgroup: Path, *, address: str, service: Endpoint | None, server: Endpoint) -> None:
    """Confine a pod's cgroup (v2) to its address, and lead it from the API server's `service` to `server`."""
    try:
        binding.confine(cgroup, address)
        if service is not None:
            binding.redirect(cgroup, service=service, server=server)
    except UnsupportedError as error:
        log.warning("pods that listen on all addresses share their ports: %s", error)


def count(cgroup: Path) -> Counters | None:
    """Count a cgroup's (v2) traffic; None where the kernel can't."""
    try:
        return Counters(cgroup)
    except UnsupportedError as error:
        log.warning("no network figures: %s", error)
        return None
