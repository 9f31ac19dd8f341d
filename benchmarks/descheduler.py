"""The real descheduler evicts executors that the operator places and moves.

Rounds of what the fault tests play (a set waits at its gate, an executor is asked to move), while the descheduler
evicts every executor that has run for a few seconds, one a namespace at a time. Then it stops, and all must come to its
end: no executor is gated, every move has ended, and no invariant of tests/faults was violated meanwhile.

`python -m benchmarks.descheduler --rounds 1` is a short form, for trying.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import yaml

from ballast.kube.kinds import POD
from benchmarks.report import Aim, Result, machine, write
from tests.cluster.chart.installation import installation
from tests.cluster.controller.pool import Pool
from tests.cluster.controller.process import replica
from tests.faults.invariants import GATED_SECONDS, RECOVERY_SECONDS, watched
from tests.faults.metrics import serving
from tests.faults.play import MOST_UNDER_WAY, Play, Stage, stage
from tests.testbed.binaries import find_binaries
from tests.testbed.instance import free_port
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until

ROUNDS = 5
LASTS_SECONDS = 20.0
LIFETIME_SECONDS = 4
ENDED = ("Settling", "Failed", "Refused", "Expired")
_NONE = Aim(0.0)
_EVICTED = "Evicted pod"


def policy(namespaces: Sequence[str]) -> str:
    lifetime = {
        "maxPodLifeTimeSeconds": LIFETIME_SECONDS,
        "states": ["Running"],
        "namespaces": {"include": list(namespaces)},
        "labelSelector": {"matchLabels": {"spark-role": "executor"}},
    }
    profile = {
        "name": "executors",
        "pluginConfig": [{"name": "DefaultEvictor"}, {"name": "PodLifeTime", "args": lifetime}],
        "plugins": {"deschedule": {"enabled": ["PodLifeTime"]}},
    }
    kind = {"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy"}
    return yaml.safe_dump({**kind, "maxNoOfPodsToEvictPerNamespace": 1, "profiles": [profile]})


@contextmanager
def descheduler(testbed: Testbed, folder: Path, namespaces: Sequence[str]) -> Iterator[None]:
    """Runs every two seconds inside the block; its log is appended to."""
    binary = find_binaries(["descheduler"], progress=print)["descheduler"]
    settings, log = folder / "policy.yaml", folder / "descheduler.log"
    settings.write_text(policy(namespaces))
    line = [str(binary), f"--policy-config-file={settings}", f"--kubeconfig={testbed.kubeconfig}", "--v=2"]
    line += ["--descheduling-interval=2s", "--bind-address=127.0.0.1", f"--secure-port={free_port('127.0.0.1')}"]
    line += [f"--cert-dir={folder}"]
    with log.open("ab") as output:
        environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
        process = subprocess.Popen(line, stdout=output, stderr=output, env=environment)
        try:
            yield
            if process.poll() is not None:
                raise RuntimeError(f"the descheduler ended:\n{log.read_text()[-3000:]}")
        finally:
            process.terminate()
            process.wait(timeout=30)


def owned(mine: Pool) -> None:
    """Give executors their driver as owner, as Spark does: the descheduler evicts no pod without one."""
    pods = mine.pods()
    drivers = [pod for pod in pods if pod["metadata"]["labels"].get("spark-role") == "driver"]
    name = drivers[0]["metadata"]["name"] if drivers else mine.executor(1, role="driver", gates=())["metadata"]["name"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": mine.pod(name)["metadata"]["uid"]}
    for pod in pods:
        metadata = pod["metadata"]
        if metadata["labels"].get("spark-role") == "executor" and not metadata.get("ownerReferences"):
            change = {"metadata": {"ownerReferences": [{**owner, "controller": True}]}}
            mine.admin.patch(POD, metadata["name"], change, namespace=mine.name)


def disturbed(on: Stage, play: Play, folder: Path) -> float:
    """Play while the descheduler runs; how long it takes after its end until all is settled."""
    pools = (on.moving, on.placing)
    for mine in pools:
        owned(mine)
    play.begin()
    with descheduler(on.moving.testbed, folder, [mine.name for mine in pools]):
        over = time.monotonic() + LASTS_SECONDS
        while time.monotonic() < over:
            play.step()
            for mine in pools:
                owned(mine)
            time.sleep(0.2)
    began = time.monotonic()

    def settled() -> bool:
        play.step()
        executors = [
            pod for mine in pools for pod in mine.pods() if pod["metadata"]["labels"]["spark-role"] != "driver"
        ]
        run = all(pod["status"].get("phase") == "Running" and not _leaving(pod) for pod in executors)
        return run and play.picture()["phase"] in ENDED

    wait_until(
        settled,
        what="all is settled",
        timeout_seconds=2 * RECOVERY_SECONDS,
        explain=lambda: str(play.picture()),
    )
    return time.monotonic() - began


def _leaving(pod: dict[str, object]) -> bool:
    metadata = pod["metadata"]
    return isinstance(metadata, dict) and "deletionTimestamp" in metadata


def run(rounds: int) -> list[Result]:
    phases: list[str] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        testbed = stack.enter_context(Testbed(progress=print).up(kubelet=False, prometheus=False, kwok=True))
        stack.enter_context(installation(testbed))
        on = stack.enter_context(stage(testbed, "evicted", stack.enter_context(serving())))
        operator = stack.enter_context(replica(testbed, "one", folder))
        operator.await_ready()
        recoveries = []
        names = (on.moving.name, on.placing.name)
        with watched(testbed, *names, most_under_way=MOST_UNDER_WAY) as witness:
            for _ in range(rounds):
                with on.play() as play:
                    recoveries.append(disturbed(on, play, folder))
                    phases.append(str(play.picture()["phase"]))
        evicted = (folder / "descheduler.log").read_text(errors="replace").count(_EVICTED)
        gated = max(each.seconds for each in witness.gated.values())
        print(f"moves ended: {phases}")
        case = f"{rounds} rounds of {LASTS_SECONDS:.0f} s"
        return [
            Result(
                case,
                "executors that the descheduler evicted",
                float(evicted),
                "1",
                aim=Aim(3.0 * rounds, at_least=True),
            ),
            Result(case, "executors that the operator evicted", float(len(witness.evicted())), "1"),
            Result(case, "longest time at a gate", gated, "s", aim=Aim(GATED_SECONDS)),
            Result(
                case, "moves that have not ended", float(sum(phase not in ENDED for phase in phases)), "1", aim=_NONE
            ),
            Result(case, "until all is settled, at most", max(recoveries), "s", aim=Aim(RECOVERY_SECONDS)),
        ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.descheduler", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"of play (default: {ROUNDS})")
    before = machine()
    write("descheduler", run(parser.parse_args().rounds), before=before)
    return 0


if __name__ == "__main__":
    sys.exit(main())
