"""The dashboard with 1 000 nodes and 10 000 executors: first paint, an update, and the look that it waits for.

Chromium without a GPU; times are medians of the page's own clock, from the navigation to the second frame after the
first picture, and from an update's answer to the second frame after it.
"""

from __future__ import annotations

import json
import statistics
import time
from dataclasses import replace
from typing import Any

from playwright.sync_api import Page

from ballast.cli.console.server import Answers, console
from ballast.cli.console.state import state
from ballast.cli.situation import Situation
from ballast.cli.source import Seen
from benchmarks.report import Aim, Result, machine, write
from tests.builders import a_node, an_executor
from tests.pages.browser import chromium
from tests.pages.dashboard import serving
from tests.unit.cli.pools import a_situation

NODES, EXECUTORS, ZONES, RACKS, TEAM = 1_000, 10_000, 3, 14, 40
PAINTS, UPDATES = 5, 10


def pool(turn: int) -> Situation:
    """Scores differ by turn, so that each answer is a new one."""
    situation = a_situation()
    nodes = tuple(
        a_node(
            f"node-{i:04}",
            zone=f"zone-{i % ZONES}",
            rack=f"rack-{i % ZONES}-{i // ZONES % RACKS}",
            cores=32.0,
            cpu=(i * 37 + turn * 11) % 100 / 100,
        )
        for i in range(NODES)
    )
    executors = tuple(
        replace(
            an_executor(f"app-{i // TEAM}-exec-{i % TEAM}", node=f"node-{i * 7 % NODES:04}"),
            topology=f"team/app-{i // TEAM}",
            application=f"app-{i // TEAM}",
        )
        for i in range(EXECUTORS)
    )
    return replace(
        situation,
        snapshot=replace(situation.snapshot, nodes=nodes, executors=executors, topologies=(), moves=()),
    )


def main() -> None:
    before = machine()
    started = time.process_time()
    states = [state(Seen((pool(turn),), operator_runs=True)) for turn in range(3)]
    look = (time.process_time() - started) / len(states)
    turn = 0

    def ask() -> dict[str, Any]:
        nonlocal turn
        turn += 1
        return states[turn % len(states)]

    app = console({"/state": Answers(ask, every_seconds=0.5, clock=time.monotonic)})
    with serving(app) as address, chromium() as browser:
        paints: list[float] = []
        updates: list[float] = []
        for _ in range(PAINTS):
            page = browser.new_page(viewport={"width": 1400, "height": 1000})
            page.goto(address)
            page.wait_for_selector("body[data-paint]")
            paints.append(_milliseconds(page, "data-paint"))
            page.close()
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        page.goto(address)
        while len(updates) < UPDATES:
            page.wait_for_selector(f"body[data-updates='{len(updates) + 1}']")
            updates.append(_milliseconds(page, "data-update"))
        page.close()
    size = len(json.dumps(states[0], separators=(",", ":")))
    case = f"{NODES} nodes, {EXECUTORS} executors"
    results = [
        Result(case, "first paint", statistics.median(paints), "ms", aim=Aim(1000)),
        Result(case, "update", statistics.median(updates), "ms", aim=Aim(100)),
        Result(case, "CPU of a look, after it was read", look * 1000, "ms"),
        Result(case, "state", size / 1024, "KiB"),
    ]
    write("console", results, before=before)


def _milliseconds(page: Page, name: str) -> float:
    return float(page.locator("body").get_attribute(name) or "nan")


if __name__ == "__main__":
    main()
