"""Of two releases in one cluster, one acts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ballast.controller.other_releases import COMPARE_SECONDS, RETRY_SECONDS, AnotherReleaseError, OtherReleases, acting
from ballast.controller.switch import Switch
from ballast.controller.telemetry import Pulse
from ballast.kube.errors import Invalid
from tests.apiserver import Answer, ApiServer, Asked, scripted

JSON = dict[str, Any]
OLD, NEW = "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"


def switch(name: str, reason: str, created: str = OLD) -> JSON:
    metadata = {"name": name, "creationTimestamp": created, "resourceVersion": "5", "uid": f"uid-{name}"}
    return {"metadata": metadata, "spec": {"gating": reason == "Leading"}, "status": {"reason": reason}}


@pytest.mark.parametrize(
    ("mine", "others", "rival"),
    [
        pytest.param(None, [], None, id="alone, before its first reconcile"),
        pytest.param(switch("ballast", "Leading"), [], None, id="alone"),
        pytest.param(None, [switch("other", "Leading")], "other", id="another leads"),
        pytest.param(switch("ballast", "Stopped"), [switch("other", "Leading", NEW)], "other", id="it took over"),
        pytest.param(switch("ballast", "Leading"), [switch("other", "Stopped")], None, id="it has stopped"),
        pytest.param(switch("ballast", "Leading"), [switch("other", "Uninstalled")], None, id="it is gone"),
        pytest.param(switch("ballast", "Leading"), [switch("other", "AnotherRelease")], None, id="it stands aside"),
        pytest.param(switch("ballast", "Leading", NEW), [switch("other", "Leading")], "other", id="both, it is older"),
        pytest.param(switch("ballast", "Leading"), [switch("other", "Leading", NEW)], None, id="both, it is younger"),
        pytest.param(switch("ballast", "Leading"), [switch("aaa", "Leading")], "aaa", id="both, of the same second"),
    ],
)
def test_which_release_acts(mine: JSON | None, others: list[JSON], rival: str | None) -> None:
    assert acting([*([mine] if mine else []), *others], "ballast") == rival


def serve(server: ApiServer, switches: dict[str, JSON]) -> None:
    """As an API server that has these switches, and keeps what is written to them."""

    def answer(asked: Asked) -> Answer:
        name = asked.path.split("?")[0].removesuffix("/status").rpartition("gateswitches")[2].strip("/")
        if asked.method == "GET" and not name:
            return Answer(body={"metadata": {"resourceVersion": "9"}, "items": list(switches.values())})
        if asked.method == "POST":
            switches["ballast"] = {**switch("ballast", ""), "spec": asked.body["spec"]}
        elif asked.method == "PATCH":
            for part in ("spec", "status"):
                switches[name][part] = {**switches[name][part], **asked.body.get(part, {})}
        return Answer(body=switches[name or "ballast"]) if (name or "ballast") in switches else Answer(404)

    server.by = answer


class Time:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_release_that_stands_aside_says_so_once_and_acts_when_the_other_has_stopped(tmp_path: Path) -> None:
    switches = {"other": switch("other", "Leading")}
    with scripted() as server:
        serve(server, switches)
        client, time = server.client(tmp_path), Time()
        own = Switch(client, name="ballast", identity="one", clock=lambda: 1e9, monotonic=lambda: 0.0)
        others = OtherReleases(client, own, name="ballast", monotonic=time)
        for _ in range(3):
            with pytest.raises(
                AnotherReleaseError, match=r"the Ballast release other acts .* delete the GateSwitch other"
            ):
                others.check()
        assert (switches["ballast"]["spec"]["gating"], switches["ballast"]["status"]["reason"]) == (
            False,
            "AnotherRelease",
        )
        assert len(server.writes) == 2, "it is created, its status is written, and nothing else is written"
        switches["other"] = switch("other", "Stopped")
        others.check()
        asked = len(server.asked)
        time.now += COMPARE_SECONDS - 1
        others.check()
        assert len(server.asked) == asked
        switches["other"] = switch("other", "Leading")
        others.forget()
        with pytest.raises(AnotherReleaseError):
            others.check()


def test_a_release_does_not_take_its_own_switch_for_anothers(tmp_path: Path) -> None:
    switches = {"ballast": switch("ballast", "Leading"), "other": switch("other", "Stopped")}
    with scripted() as server:
        serve(server, switches)
        client = server.client(tmp_path)
        own = Switch(client, name="ballast", identity="one", clock=lambda: 1e9, monotonic=lambda: 0.0)
        OtherReleases(client, own, name="ballast", monotonic=Time()).check()
        assert server.writes == []


@pytest.mark.parametrize("status", [403, 404])
def test_where_switches_can_not_be_seen_a_release_acts(tmp_path: Path, status: int) -> None:
    """Their definition was deleted, or the roles are of an older chart."""
    with scripted(Answer(status)) as server:
        client = server.client(tmp_path)
        own = Switch(client, name="ballast", identity="one", clock=lambda: 1e9, monotonic=lambda: 0.0)
        OtherReleases(client, own, name="ballast", monotonic=Time()).check()
        assert server.writes == []


def test_an_answer_that_fails_later_keeps_no_release_from_acting(tmp_path: Path) -> None:
    with scripted(Answer(body={"metadata": {}, "items": []}), Answer(422, {"message": "no"})) as server:
        client, time = server.client(tmp_path), Time()
        own = Switch(client, name="ballast", identity="one", clock=lambda: 1e9, monotonic=lambda: 0.0)
        others = OtherReleases(client, own, name="ballast", monotonic=time)
        others.check()
        time.now += COMPARE_SECONDS
        for passed_seconds in (0.0, RETRY_SECONDS - 0.1, 0.1):
            time.now += passed_seconds
            others.check()
            assert len(server.asked) == (2 if time.now < 1000.0 + COMPARE_SECONDS + RETRY_SECONDS else 3)


def test_a_replica_that_stands_aside_is_alive_and_not_ready() -> None:
    time = Time()
    pulse = Pulse(time)
    for _ in range(20):
        pulse.fail(AnotherReleaseError("the Ballast release other acts"), alive=True)
        assert (pulse.alive, pulse.ready) == (True, False)
        assert pulse.failing == "the Ballast release other acts", "it names no tenant, and can't be guessed"
        time.now += 30.0
    pulse.beat()
    assert pulse.ready


def test_before_it_is_known_once_whether_another_release_acts_none_does(tmp_path: Path) -> None:
    with scripted(Answer(422, {"message": "no"})) as server:
        client = server.client(tmp_path)
        own = Switch(client, name="ballast", identity="one", clock=lambda: 1e9, monotonic=lambda: 0.0)
        with pytest.raises(Invalid):
            OtherReleases(client, own, name="ballast", monotonic=Time()).check()


def test_a_switch_that_can_not_be_turned_off_does_not_keep_a_release_from_standing_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with scripted() as server:
        serve(server, {"other": switch("other", "Leading")})
        answer = server.by
        assert answer is not None
        server.by = lambda asked: answer(asked) if asked.method == "GET" else Answer(403, {"message": "no right"})
        client = server.client(tmp_path)
        own = Switch(client, name="ballast", identity="one", clock=lambda: 1e9, monotonic=lambda: 0.0)
        with pytest.raises(AnotherReleaseError):
            OtherReleases(client, own, name="ballast", monotonic=Time()).check()
    assert "the gate switch ballast stays as it is" in caplog.text
