from dataclasses import dataclass
from pathlib import Path

from examples.demo.machine import Machine, Use


@dataclass
class Stand:
    """A machine whose time and ticks the test sets."""

    stat: Path
    now: float = 0.0

    def at(self, now: float, *, busy: int, idle: int, stolen: int = 0) -> None:
        self.now = now
        self.stat.write_text(f"cpu  {busy} 0 0 {idle} 0 0 0 {stolen} 0 0\ncpu0 0 0 0 0\n")


def test_it_tells_the_busy_share_of_the_window(tmp_path: Path) -> None:
    stand = Stand(tmp_path / "stat")
    machine = Machine(10.0, clock=lambda: stand.now, stat=stand.stat)
    stand.at(0, busy=1000, idle=0)
    assert machine.look() is None
    stand.at(5, busy=1100, idle=100)
    assert machine.look() is None
    stand.at(10, busy=1200, idle=200)
    assert machine.look() == Use(50.0)
    stand.at(20, busy=1250, idle=350)
    assert machine.look() == Use(25.0)


def test_it_tells_what_of_that_was_stolen_by_the_machines_host(tmp_path: Path) -> None:
    stand = Stand(tmp_path / "stat")
    machine = Machine(10.0, clock=lambda: stand.now, stat=stand.stat)
    stand.at(0, busy=1000, idle=0, stolen=500)
    machine.look()
    stand.at(10, busy=1600, idle=100, stolen=800)
    assert machine.look() == Use(90.0, stolen_percent=30.0)


def test_what_was_before_does_not_count_once_forgotten(tmp_path: Path) -> None:
    stand = Stand(tmp_path / "stat")
    machine = Machine(10.0, clock=lambda: stand.now, stat=stand.stat)
    stand.at(0, busy=1000, idle=0)
    machine.look()
    machine.forget()
    stand.at(12, busy=2000, idle=0)
    assert machine.look() is None
    stand.at(22, busy=2000, idle=1000)
    assert machine.look() == Use(0.0)
