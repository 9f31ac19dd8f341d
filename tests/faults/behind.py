"""One operator behind a gateway, and what it is to do there. It lives through all faults of a file of tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.cluster.chart.installation import NAMESPACE, RELEASE, Installation
from tests.cluster.controller.process import Replica, replica
from tests.faults.gateway import Gateway, gateway
from tests.faults.invariants import Witness, watched
from tests.faults.metrics import serving
from tests.faults.play import MOST_UNDER_WAY, Stage, stage
from tests.testbed.testbed import Testbed


class Scene(NamedTuple):
    installed: Installation
    gateway: Gateway
    operator: Replica
    stage: Stage

    @property
    def testbed(self) -> Testbed:
        return self.installed.testbed

    @contextmanager
    def watched(self) -> Iterator[Witness]:
        spaces = (self.stage.moving.name, self.stage.placing.name)
        with watched(self.testbed, *spaces, most_under_way=MOST_UNDER_WAY) as witness:
            yield witness


@contextmanager
def behind_a_gateway(
    installed: Installation, folder: Path, name: str, *, program: Sequence[str] = ()
) -> Iterator[Scene]:
    """`name`: prefix of the pools'. The process must not end, whatever it meets, and must stop cleanly.

    `program`: as of `replica`.
    """
    plane = installed.testbed
    with ExitStack() as stack:
        passing = stack.enter_context(gateway(plane, folder))
        config = passing.kubeconfig(plane.token(NAMESPACE, RELEASE), namespace=NAMESPACE)
        operator = stack.enter_context(replica(plane, "behind", folder, config=config, program=program))
        found = stack.enter_context(stage(plane, name, stack.enter_context(serving())))
        operator.await_ready()
        yield Scene(installed, passing, operator, found)
        assert operator.process.poll() is None, "the operator's process has ended"
        assert operator.stop() == 0
