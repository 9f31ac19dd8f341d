from dataclasses import dataclass
from pathlib import Path

from examples.demo.machine import Machine


@dataclass
class Stand:
    """A machine whose time and ticks the test sets."""

    stat: Path
    now: float = 0.0

    def at(self, now: float, *, busy: int, idle: int) -> None:
        self.now = now
        self.stat.write_text(f"cpu  {busy} 0 0 {idle} 0 0 0 0 0 0\ncpu0 0 0 0 0\n")


def test_it_tells_the_busy_share_of_the_window(tmp_path: Path) -> None:
    stand = Stand(tmp_path / "stat")
    machine = Machine(10.0, clock=lambda: stand.now, stat=stand.stat)
    stand.at(0, busy=1000, idle=0)
    assert machine.look() is None
    stand.at(5, busy=1100, idle=100)
    assert machine.look() is None
    stand.at(10, busy=1200, idle=200)
    assert machine.look() == 50.0
    stand.at(20, busy=1250, idle=350)
    assert machine.look() == 25.0


def test_what_was_before_does_not_count_once_forgotten(tmp_path: Path) -> None:
    stand = Stand(tmp_path / "stat")
    machine = Machine(10.0, clock=lambda: stand.now, stat=stand.stat)
    stand.at(0, busy=1000, idle=0)
    machine.look()
    machine.forget()
    stand.at(12, busy=2000, idle=0)
    assert machine.look() is None
    stand.at(22, busy=2000, idle=1000)
    assert machine.look() == 0.0
