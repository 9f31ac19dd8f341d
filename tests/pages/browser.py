"""A headless Chromium, and what its pages look like."""

from __future__ import annotations

import base64
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.testbed.binaries import cache_folder

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_COLORS = """
async ([png, boxes]) => {
  const image = new Image();
  image.src = `data:image/png;base64,${png}`;
  await image.decode();
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [image.width, image.height];
  const pen = canvas.getContext('2d');
  pen.drawImage(image, 0, 0);
  return boxes.map(([x, y, width, height]) => {
    const found = new Map();
    for (const pixel of new Uint32Array(pen.getImageData(x, y, width, height).data.buffer))
      found.set(pixel, (found.get(pixel) ?? 0) + 1);
    return [...found.values()].sort((one, other) => other - one);
  });
}
"""


@contextmanager
def chromium() -> Iterator[Browser]:
    """Of PATH, or the one that `make setup` keeps where there is no package."""
    places = f"{os.environ['PATH']}:{cache_folder() / 'bin'}"
    program = next((path for name in _NAMES if (path := shutil.which(name, path=places))), None)
    if program is None:
        pytest.fail(f"none of {', '.join(_NAMES)} is on PATH: run `make setup`, or on Ubuntu for arm64 install one")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--disable-gpu"])
        yield browser
        browser.close()


@dataclass(frozen=True, slots=True)
class Box:
    """Of an element, in pixels of the page."""

    x: float
    y: float
    width: float
    height: float


@dataclass(slots=True)
class Opened:
    """A page from a file, and all that it said and asked for."""

    page: Page
    scheme: str
    """light or dark"""
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    @classmethod
    def at(cls, browser: Browser, path: Path, *, width: int, scheme: str) -> Opened:
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
        opened = cls(page, scheme)
        page.on("console", lambda message: opened.said.append(message.text))
        page.on("pageerror", lambda error: opened.said.append(str(error)))
        page.on("request", lambda request: opened.asked.append(request.url))
        page.goto(path.as_uri())
        return opened

    def plots(self) -> list[Box]:
        """Where the plots are that can be seen."""
        found = [plot.bounding_box() for plot in self.page.query_selector_all("svg") if plot.is_visible()]
        return [Box(**box) for box in found if box is not None]

    def colors(self, browser: Browser, boxes: Sequence[Box]) -> list[list[int]]:
        """Pixels of each color in each of them, the most frequent one first."""
        picture = base64.b64encode(self.page.screenshot(full_page=True)).decode()
        blank = browser.new_page()
        found: list[list[int]] = blank.evaluate(_COLORS, [picture, [list(astuple(box)) for box in boxes]])
        blank.close()
        return found

    def measured(self, expression: str) -> Any:
        return self.page.evaluate(expression)
