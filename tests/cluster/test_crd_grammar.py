"""The API server and the parsers agree on what is a duration and what is a quantity."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.crds.grammar import DURATIONS, NO_DURATIONS, NO_QUANTITIES, QUANTITIES
from tests.cluster.crds.server import Server

pytestmark = pytest.mark.cluster
LONGEST_COOLDOWN_SECONDS = 168 * 3600.0


def policy(cooldown: str) -> dict[str, Any]:
    spec = {"nodeSelector": {}, "moves": {"cooldown": cooldown, "ttlAfterFinished": "2160h"}}
    return {
        "apiVersion": "ballast.dev/v1alpha1",
        "kind": "BalancingPolicy",
        "metadata": {"name": "grammar"},
        "spec": spec,
    }


def topology(rate: str | int) -> dict[str, Any]:
    components = [{"name": "only", "exchange": {"bytesPerSecond": rate}}]
    return {
        "apiVersion": "ballast.dev/v1alpha1",
        "kind": "SparkTopology",
        "metadata": {"name": "grammar"},
        "spec": {"components": components},
    }


@pytest.mark.parametrize(("text", "seconds"), DURATIONS)
def test_the_server_takes_a_duration_where_its_bounds_allow(text: str, seconds: float, crd_server: Server) -> None:
    answer = crd_server.create(policy(text))

    assert (answer.code == 201) is (0 <= seconds <= LONGEST_COOLDOWN_SECONDS), answer.message


@pytest.mark.parametrize("text", NO_DURATIONS)
def test_the_server_refuses_what_is_no_duration(text: str, crd_server: Server) -> None:
    answer = crd_server.create(policy(text))

    assert answer.code == 422
    assert "spec.moves.cooldown" in answer.message
    assert "write a duration such as 30s" in answer.message


@pytest.mark.parametrize(("raw", "value"), QUANTITIES)
def test_the_server_takes_a_quantity_that_is_not_negative(raw: str | int, value: Any, crd_server: Server) -> None:
    answer = crd_server.create(topology(raw))

    assert (answer.code == 201) is (value >= 0), answer.message


@pytest.mark.parametrize("raw", NO_QUANTITIES)
def test_the_server_refuses_what_is_no_quantity(raw: str | int, crd_server: Server) -> None:
    answer = crd_server.create(topology(raw))

    assert answer.code == 422
    assert "spec.components[0].exchange.bytesPerSecond" in answer.message
