"""Pages as a browser shows them: opened from its file, on narrow and wide screens, in light and dark."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from ballast.cli.picture.applications import applications_page
from ballast.cli.picture.backtested import backtested_page
from ballast.cli.picture.exhibits import exhibits
from ballast.cli.picture.sized import sized_page
from ballast.cli.simulate import simulated_page
from ballast.cli.situation import load
from ballast.report.pool import report
from ballast.report.price import own_price
from ballast.simulation.ranking import ranking
from ballast.simulation.scenario import Scenario
from ballast.simulation.study import Study
from ballast.sizing.facts import Facts
from ballast.sizing.recommendation import recommend
from tests.pages.browser import Opened, chromium
from tests.unit.simulation.studies import study
from tests.unit.simulation.traces import move, trace
from tests.unit.sizing.values import log, progress, sharp, stage, task

MANY = [f"careful avgShedder.lowThreshold={threshold}" for threshold in range(10, 24)]
SCENARIO = Path(__file__).parents[2] / "examples" / "scenarios" / "flash-crowd.yaml"
SNAPSHOT = SCENARIO.parents[1] / "report" / "snapshot.yaml"


def _backtest(made: Study) -> str:
    ranked = ranking(made)
    return backtested_page(made, ranked, exhibits(made, ranked), made="2026-11-22 21:00 UTC by ballast 0.1.0")


def _large() -> Study:
    days = [f"pool 2026-11-{day}" for day in range(10, 16)]
    return study(["careful", "eager", "still", *MANY], windows=days, nodes=80)


def _simulation() -> str:
    usage = [[90.0, 20.0], [70.0, 40.0], [60.0, 50.0]]
    nodes = ("streaming-memory-1", "streaming-memory-2")
    moves = (replace(move(0, 1, 60.0), source=nodes[0], target=nodes[1]),)
    runs = [
        trace(usage, nodes=nodes, policy="AvgShedder", moves=moves),
        trace(usage[:1] * 3, nodes=nodes, policy="None"),
    ]
    return simulated_page(Scenario.read(SCENARIO), runs, made="2026-11-22 21:00 UTC by ballast 0.1.0")


def _sizing() -> str:
    stages = (stage(n, task(n, start=2.0 * n, seconds=1.0, input_records=1000.0)) for n in range(10))
    facts = Facts(progress=progress(sharp(), arriving=900.0), log=log(*stages))
    return sized_page(recommend(facts), facts, made="2026-11-22 21:00 UTC by ballast 0.1.0")


def _report() -> str:
    """The example of docs/report.md."""
    pool = load(SNAPSHOT)
    found = report(pool.snapshot, pool.policy, price=own_price(0.01))
    return applications_page(found, made="2026-11-22 21:00 UTC by ballast 0.1.0")


PAGES: Mapping[str, Callable[[], str]] = {
    "backtest": lambda: _backtest(
        replace(
            study(unknown=("Zones are not recorded: the cost of locality is not judged.",)),
            left_out={"pool 2026-11-22": "there are figures of 3 of 24 hours, less than 75%"},
        )
    ),
    "large-backtest": lambda: _backtest(_large()),
    "single-run": lambda: _backtest(study(["still"], windows=["pool 2026-11-20"], seeds=[1])),
    "report": _report,
    "simulation": _simulation,
    "sizing": _sizing,
}
SCREENS = [(400, "light"), (400, "dark"), (1600, "light"), (1600, "dark")]
CROSSED = (SCREENS[::3], SCREENS[1:3])
"""A narrow screen and a wide one, one of them dark."""
SHOWN = {name: SCREENS if name == "backtest" else CROSSED[number % 2] for number, name in enumerate(PAGES)}
"""On a narrow screen first, where words and plots have least room: `make test` opens each page there alone."""
PAPER = "getComputedStyle(document.body).backgroundColor"
INK = "getComputedStyle(document.querySelector('{}')).color"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    written = {name: folder / f"{name}.html" for name in PAGES}
    for name, path in written.items():
        path.write_text(PAGES[name](), encoding="utf-8")
    return written


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(
            (name, screen),
            marks=() if screen == screens[0] else pytest.mark.soak,
            id=f"{name}-{screen[0]}px-{screen[1]}",
        )
        for name, screens in SHOWN.items()
        for screen in screens
    ],
)
def opened(request: pytest.FixtureRequest, browser: Browser, pages: dict[str, Path]) -> Iterator[Opened]:
    name, (width, scheme) = request.param
    shown = Opened.at(browser, pages[name], width=width, scheme=scheme)
    yield shown
    shown.page.close()


def test_nothing_is_complained_of_and_nothing_fetched(opened: Opened) -> None:
    assert opened.said == []
    assert opened.asked == [opened.page.url]


def test_the_page_does_not_scroll_sideways(opened: Opened) -> None:
    assert opened.measured("document.documentElement.scrollWidth <= window.innerWidth")


def test_every_plot_is_there_and_not_blank(opened: Opened, browser: Browser) -> None:
    plots = opened.plots()
    assert len(plots) == len(opened.page.query_selector_all("svg")) / 2
    assert all(plot.width > 300 and plot.height > 40 for plot in plots)
    for paper, *marks in opened.colors(browser, plots):
        assert len(marks) > 10
        assert sum(marks) > 0.01 * paper


def test_no_words_are_cut_off_by_the_edge_of_their_plot(opened: Opened) -> None:
    cut = opened.measured(
        """[...document.querySelectorAll('svg text')].filter(text => {
          const [own, all] = [text.getBoundingClientRect(), text.ownerSVGElement.getBoundingClientRect()];
          return own.width && (own.left < all.left - 1 || own.right > all.right + 1 || own.bottom > all.bottom + 1);
        }).map(text => text.textContent)"""
    )
    assert cut == []


def test_text_can_be_read_on_its_paper(opened: Opened) -> None:
    paper = _luminance(opened.measured(PAPER))
    assert (paper < 0.5) == (opened.scheme == "dark")
    for element in ("h1", ".soft"):
        ink = _luminance(opened.measured(INK.format(element)))
        assert (max(ink, paper) + 0.05) / (min(ink, paper) + 0.05) >= 4.5, element


def _luminance(color: str) -> float:
    """Relative, as WCAG 2 has it."""
    red, green, blue = (int(part) / 255.0 for part in re.findall(r"\d+", color)[:3])
    linear = [c / 12.92 if c <= 0.04045 else math.pow((c + 0.055) / 1.055, 2.4) for c in (red, green, blue)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
