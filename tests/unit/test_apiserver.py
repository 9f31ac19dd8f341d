"""The fake API server behaves as the table says, over HTTP and inside the process, and does what is asked of a fake."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apiserver import ApiServer, serving
from tests.apiserver.behaviors import BEHAVIORS, Behavior, Scene, a_silent_watch_brings_a_bookmark_within_75_seconds


@pytest.fixture(params=["over HTTP", "inside"])
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scene]:
    with serving(ApiServer(oldest=50)) as server:
        client = server.client(tmp_path if request.param == "over HTTP" else None)
        yield Scene(client, "analytics")
        client.close()


@pytest.mark.parametrize("behavior", BEHAVIORS, ids=lambda each: each.__name__.replace("_", " "))
def test_the_fake_api_server(scene: Scene, behavior: Behavior) -> None:
    behavior(scene)


def test_a_silent_watch_of_the_fake_brings_a_bookmark() -> None:
    a_silent_watch_brings_a_bookmark_within_75_seconds(Scene(ApiServer(bookmark_seconds=0.01).client(), "analytics"))
