from io import StringIO

from rich.console import Console

from examples.demo.machine import Use
from examples.demo.pool import pool_nodes
from examples.demo.screen import NodeState, Screen, State


def state(score: float | None = 91.0) -> State:
    nodes = [
        NodeState(spec, score if spec.name == "large-b1-1" else None, 2 if spec.zone == "zone-b" else 0, (1, 0), False)
        for spec in pool_nodes()
    ]
    return State(nodes, machine=Use(61.0), batch_seconds=1.25, records=1200, move="")


def test_lines_are_plain_where_there_is_no_terminal() -> None:
    out = StringIO()
    with Screen(Console(file=out, width=80)) as screen:
        screen.title("(a) kube-scheduler alone")
        screen.say("executors on large-b1-1 ×2")
        screen.show(state())
        screen.show(state())
    lines = out.getvalue().splitlines()
    assert lines[:2] == ["0:00  (a) kube-scheduler alone", "0:00  executors on large-b1-1 ×2"]
    assert len(lines) == 3, "the state is not repeated within seconds"
    assert "large-b1-1 91 x2 hits 1/0" in lines[2]
    assert "machine 61 % busy" in lines[2]
    assert "\x1b" not in out.getvalue()


def test_a_terminal_shows_every_node_with_its_score() -> None:
    out = StringIO()
    with Screen(Console(file=out, width=120, height=40, force_terminal=True, color_system=None)) as screen:
        screen.show(state())
        screen.say("a line that stays")
    shown = out.getvalue()
    assert all(spec.name in shown for spec in pool_nodes())
    assert "●●" in shown
    assert "a line that stays" in shown
