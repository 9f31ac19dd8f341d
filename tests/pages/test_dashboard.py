"""The dashboard as a browser shows it, served as `ballast dashboard` serves it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from ballast.cli.console.server import Answers, console
from ballast.cli.console.state import Gains, placed_again, pool_state, state
from ballast.cli.situation import Situation
from ballast.cli.source import Seen
from ballast.errors import BallastError
from ballast.model import MovePhase
from tests.builders import NOW, a_move
from tests.pages.browser import chromium
from tests.pages.dashboard import serving
from tests.unit.cli.pools import a_situation


@dataclass(slots=True)
class Served:
    """A pool that tests may change while a page shows it."""

    situation: Situation
    fails: bool = False
    address: str = ""

    def ask(self) -> dict[str, Any]:
        if self.fails:
            raise BallastError("the API server does not answer")
        gains = {("team", "early"): Gains(30.0, 25.0), ("team", "worse"): Gains(20.0, -5.0)}
        found = state(Seen((self.situation,), operator_runs=True))
        return {**found, "pools": [pool_state(self.situation, gains)]}


def _pool() -> Situation:
    situation = a_situation()
    moves = (
        a_move(name="early", namespace="team", started_at=NOW - 900, phase=MovePhase.SUCCEEDED, ended_at=NOW - 600),
        a_move(name="worse", namespace="team", started_at=NOW - 500, phase=MovePhase.SUCCEEDED, ended_at=NOW - 300),
    )
    return replace(situation, snapshot=replace(situation.snapshot, moves=moves))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def served() -> Iterator[Served]:
    pool = Served(_pool())
    answers = {
        "/state": Answers(pool.ask, every_seconds=0.2, clock=time.monotonic),
        "/again": Answers(lambda: placed_again(Seen((pool.situation,))), every_seconds=60.0, clock=time.monotonic),
    }
    with serving(console(answers)) as pool.address:
        yield pool


@pytest.fixture(params=["light", "dark"])
def page(request: pytest.FixtureRequest, browser: Browser, served: Served) -> Iterator[Page]:
    opened = browser.new_page(viewport={"width": 1200, "height": 900}, color_scheme=request.param)
    said: list[str] = []
    asked: list[str] = []
    opened.on("console", lambda message: said.append(message.text))
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.on("request", lambda each: asked.append(each.url))
    opened.goto(served.address)
    opened.wait_for_selector("body[data-shown]")
    yield opened
    assert said == []
    assert all(url.startswith(served.address) for url in asked)
    opened.close()


def test_it_shows_nodes_topologies_moves_and_what_is_not_done(page: Page) -> None:
    expect(page.locator("#figures")).to_contain_text("85.0")
    expect(page.locator("#topology-table tbody tr")).not_to_have_count(0)
    expect(page.locator("#moves tbody tr")).to_have_count(2)
    expect(page.locator("#moves")).to_contain_text("-5.0")
    expect(page.locator("#refusals tbody tr")).not_to_have_count(0)
    expect(page.locator("#nodes canvas")).to_be_visible()
    expect(page.locator("#gains canvas")).to_be_visible()


def test_keys_choose_nodes_and_tell_their_executors(page: Page) -> None:
    page.keyboard.press("h")
    expect(page.locator("#detail h3")).to_have_text("hot")
    expect(page.locator("#detail li")).to_have_count(2)
    page.keyboard.press("ArrowRight")
    expect(page.locator("#detail h3")).not_to_have_text("hot")
    page.keyboard.press("/")
    page.keyboard.type("cold")
    expect(page.locator("#detail h3")).to_have_text("cold")
    page.keyboard.press("Escape")
    expect(page.locator("#detail")).to_have_text("Choose a node.")


def test_a_click_chooses_the_node_under_it(page: Page) -> None:
    box = page.locator("#nodes").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 20, box["y"] + 45)
    expect(page.locator("#detail h3")).not_to_have_count(0)


def test_it_follows_what_happens_and_keeps_the_last_when_the_cluster_is_gone(page: Page, served: Served) -> None:
    move = a_move(name="new", namespace="team", started_at=NOW, phase=MovePhase.LEAVING)
    snapshot = served.situation.snapshot
    served.situation = replace(served.situation, snapshot=replace(snapshot, moves=(*snapshot.moves, move)))
    expect(page.locator("#moves tbody tr")).to_have_count(3)
    expect(page.locator("#moves tbody tr").first).to_contain_text("Leaving")
    served.fails = True
    expect(page.locator("#problems")).to_contain_text("the API server does not answer")
    expect(page.locator("#moves tbody tr")).to_have_count(3)
    served.fails = False
    expect(page.locator("#problems p")).to_have_count(0)


def test_an_answer_that_did_not_change_clears_that_the_program_did_not_answer(browser: Browser, served: Served) -> None:
    page = browser.new_page()
    page.goto(served.address)
    page.wait_for_selector("body[data-shown]")
    page.route("**/state", lambda route: route.fulfill(status=500, body="stopped"))
    expect(page.locator("#problems")).to_contain_text("does not answer (stopped)")
    page.unroute("**/state")
    expect(page.locator("#problems p")).to_have_count(0)
    served.fails = True
    expect(page.locator("#problems")).to_have_text("the API server does not answer")
    page.route("**/state", lambda route: route.fulfill(status=500, body="stopped"))
    expect(page.locator("#problems")).to_contain_text("does not answer (stopped)")
    page.unroute("**/state")
    expect(page.locator("#problems")).to_have_text("the API server does not answer")
    page.close()


def test_a_topology_can_be_picked_out(page: Page) -> None:
    page.select_option("#topologies", index=1)
    expect(page.locator("#topology-table tr.chosen")).to_have_count(1)


def test_light_and_dark_can_be_switched(page: Page, request: pytest.FixtureRequest) -> None:
    scheme = request.node.callspec.params["page"]
    page.keyboard.press("d")
    expect(page.locator("html")).to_have_attribute("data-theme", "light" if scheme == "dark" else "dark")
    page.keyboard.press("d")
    expect(page.locator("html")).to_have_attribute("data-theme", scheme)
