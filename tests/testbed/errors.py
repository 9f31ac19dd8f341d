"""What a testbed says when something fails."""

from pathlib import Path

from ballast.errors import BallastError

LOG_LINES_SHOWN = 15


class TestbedError(BallastError):
    """Something of the testbed did not do what it should; the message names its log and the remedy."""

    __test__ = False


def log_tail(log: Path) -> str:
    """The last lines of a part's log, introduced by where the whole of it lies."""
    if not log.exists():
        return f"(no log at {log})"
    lines = log.read_text(errors="replace").splitlines()[-LOG_LINES_SHOWN:]
    return "\n".join([f"log {log}:", *(f"  | {line[:400]}" for line in lines)])
