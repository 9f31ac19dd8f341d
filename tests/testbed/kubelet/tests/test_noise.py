import resource
import signal
import subprocess
import sys
import time

import pytest

from tests.testbed.kubelet.images import HERE

SECONDS = 2.0


def used_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@pytest.mark.soak
@pytest.mark.parametrize("cores", [0.1, 0.4])
def test_noise_burns_no_more_than_its_level_and_most_of_it(cores: float) -> None:
    before = used_seconds()
    with subprocess.Popen(
        [sys.executable, "-IS", HERE / "noise.py", "--cores", str(cores)], stderr=subprocess.PIPE
    ) as noise:
        assert noise.stderr is not None
        noise.stderr.readline()
        time.sleep(SECONDS)  # burning for a while is what is measured
        noise.send_signal(signal.SIGTERM)
        assert noise.wait() == 0
    burnt = (used_seconds() - before) / SECONDS
    assert cores * 0.5 < burnt < cores * 1.3 + 0.05
