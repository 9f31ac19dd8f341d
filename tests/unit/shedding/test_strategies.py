from __future__ import annotations

from dataclasses import replace

import pytest

from ballast.errors import InvalidField
from ballast.model.shedders import (
    OverloadSettings,
    ShedderSettings,
    ThresholdSettings,
    TrafficSettings,
    TransferSettings,
    UniformSettings,
)
from ballast.shedding.load import NodeLoad, PoolLoad
from ballast.shedding.strategies import STRATEGIES, decoded, encoded, shed
from tests.unit.shedding.builders import MIB, busy, pool

SKEWED = pool(
    busy("hot", 95, [4000.0] * 10, volumes=[40 * MIB] * 10), busy("cold", 5, [100.0], volumes=[MIB], rate=100.0)
)

EAGER: dict[str, ShedderSettings] = {
    "AvgShedder": TrafficSettings(low_hits=1, high_hits=1),
    "ThresholdShedder": ThresholdSettings(),
    "OverloadShedder": OverloadSettings(threshold=90.0),
    "UniformLoadShedder": UniformSettings(max_executors=1),
    "TransferShedder": TransferSettings(hits=0, target_std_ratio=0.1),
}


@pytest.mark.parametrize("name", STRATEGIES)
def test_each_unloads_the_hot_node(name: str) -> None:
    made = shed(name, SKEWED, EAGER[name], "").suggestions
    assert {each.executor for each in made if each.source == "hot"} <= {f"hot/{index}" for index in range(10)}
    assert made[0].source == "hot"


@pytest.mark.parametrize(
    ("name", "settings", "passes"),
    [
        ("AvgShedder", TrafficSettings(high_hits=4), 4),
        ("TransferShedder", TransferSettings(hits=3, target_std_ratio=0.1), 4),
    ],
)
def test_hits_are_kept_in_the_state(name: str, settings: ShedderSettings, passes: int) -> None:
    state, acted = "", []
    for _ in range(passes):
        result = shed(name, SKEWED, settings, state)
        state = result.state
        acted.append(bool(result.suggestions))
    assert acted == [False] * (passes - 1) + [True]


def test_averages_are_kept_in_the_state() -> None:
    calm = pool(busy("hot", 50), busy("cold", 50))
    before = shed("ThresholdShedder", calm, None, "").state
    assert shed("ThresholdShedder", SKEWED, ThresholdSettings(), before).suggestions == ()
    assert shed("ThresholdShedder", SKEWED, ThresholdSettings(history_ratio=0.0), before).suggestions != ()


HOT, *COLD = (busy("hot", 95, [4000.0] * 4, volumes=[40 * MIB] * 4), busy("cold", 5), busy("cool", 15))


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("AvgShedder", TrafficSettings(low_hits=9, high_hits=4)),
        ("ThresholdShedder", ThresholdSettings(history_ratio=0.5, threshold=99.0)),
        ("TransferShedder", TransferSettings(hits=9, target_std_ratio=0.1, history_ratio=0.5)),
    ],
)
def test_what_is_known_of_a_node_outlasts_a_pass_without_its_figures(name: str, settings: ShedderSettings) -> None:
    """Its hits and averages neither grow nor vanish; those of one that has left the pool do."""
    cooler = replace(HOT, score=75.0)
    before = shed(name, pool(cooler, *COLD), settings, shed(name, pool(HOT, *COLD), settings, "").state).state
    silent = shed(name, PoolLoad.of(COLD, silent=frozenset({"hot"})), settings, before).state
    gone = shed(name, pool(*COLD), settings, before).state
    assert seen(silent, "hot") == seen(before, "hot") != {}
    assert seen(gone, "hot") == {}


def seen(state: str, name: str) -> dict[str, tuple[float, ...]]:
    return decoded(state, [name], width=2)[0] or decoded(state, [name], width=1)[0]


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("AvgShedder", TrafficSettings(high_hits=4)),
        ("TransferShedder", TransferSettings(hits=3, target_std_ratio=0.25)),
    ],
)
@pytest.mark.parametrize(("missing", "third"), [("hot", 10.0), ("cold", 90.0)])
def test_a_pass_without_the_figures_of_a_node_starts_no_count_again(
    name: str, settings: ShedderSettings, missing: str, third: float
) -> None:
    """The two that are left are not apart."""
    nodes = (HOT, busy("cold", 5, volume=160 * MIB), busy("third", third, volume=160 * MIB))
    state, acted = "", []
    for at in range(5):
        shown = [node for node in nodes if at != 2 or node.name != missing]
        silent = frozenset({missing}) if at == 2 else frozenset[str]()
        result = shed(name, PoolLoad.of(shown, silent), settings, state)
        state = result.state
        acted.append(bool(result.suggestions))
    assert acted == [False] * 4 + [True]


@pytest.mark.parametrize("name", STRATEGIES)
def test_an_empty_pool_and_a_foreign_state(name: str) -> None:
    assert shed(name, PoolLoad(()), None, "nonsense").suggestions == ()


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidField, match=r"AvgShedder, OverloadShedder"):
        shed("Shredder", SKEWED, None, "")


def test_what_may_not_move_stays_with_every_strategy() -> None:
    held = PoolLoad.of(
        replace(node, executors=tuple(replace(executor, movable=False) for executor in node.executors))
        for node in SKEWED.nodes
    )
    for name, settings in EAGER.items():
        assert shed(name, held, settings, "").suggestions == ()


def test_transfer_looks_at_the_busiest_candidates_only() -> None:
    """Of the two that it looks at one has to stay; without its own limit it would find a smaller one."""
    hot = busy("hot", 95, [0.0] * 4, volumes=[1 * MIB, 2 * MIB, 8 * MIB, 9 * MIB])
    load = pool(hot, busy("cold", 5, [0.0], volumes=[0.0]))
    settings = TransferSettings(hits=0, target_std_ratio=0.1)
    two = shed("TransferShedder", load, replace(settings, max_candidates=2), "").suggestions
    all_of_them = shed("TransferShedder", load, settings, "").suggestions
    assert [each.executor for each in two] == ["hot/2"]
    assert [each.executor for each in all_of_them] == ["hot/0", "hot/1"]


def test_transfer_takes_the_rate_where_bytes_are_alike() -> None:
    hot = busy("hot", 95, [900.0, 0.0, 600.0], volumes=[2 * MIB] * 3)
    load = pool(hot, busy("cold", 5, [0.0], volumes=[0.0]))
    settings = TransferSettings(hits=0, target_std_ratio=0.1, max_candidates=2)
    assert [each.executor for each in shed("TransferShedder", load, settings, "").suggestions] == ["hot/2"]


def test_transfer_waits_for_a_node_to_cool_down_and_for_fresh_figures() -> None:
    hot = busy("hot", 95, [0.0] * 4, volumes=[MIB, 2 * MIB, 3 * MIB, 4 * MIB])
    cold = busy("cold", 5, [0.0], volumes=[0.0])
    settings = TransferSettings(hits=0, target_std_ratio=0.1, cooldown_seconds=60.0, ttl_seconds=30.0)

    def made(node: NodeLoad) -> int:
        return len(shed("TransferShedder", pool(node, cold), settings, "").suggestions)

    assert made(replace(hot, since_unload_seconds=60.0, age_seconds=30.0)) > 0
    assert made(replace(hot, since_unload_seconds=59.0)) == 0
    assert made(replace(hot, age_seconds=31.0)) == 0


def test_figures_are_read_back_by_whoever_knows_the_nodes() -> None:
    text = encoded({"a": (1.0, 0.25), "gone": (2.0, 0.5)}, extra=3)
    assert decoded(text, ["a", "new"], width=2) == ({"a": (1.0, 0.25)}, 3.0)


def test_six_digits_are_kept() -> None:
    assert decoded(encoded({"a": (0.123456789,)}), ["a"], width=1) == ({"a": (0.123457,)}, 0.0)


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"nodes":{"x":["y"]},"extra":0}', '{"nodes":[],"extra":0}'])
def test_foreign_text_is_a_fresh_start(text: str) -> None:
    assert decoded(text, ["a"], width=1) == ({}, 0.0)


def test_figures_of_another_width_are_not_ours() -> None:
    assert decoded(encoded({"a": (1.0,)}), ["a"], width=2) == ({}, 0.0)


def test_a_thousand_nodes_take_little_room() -> None:
    names = [f"ip-10-0-0-{index}.eu-central-1.compute.internal" for index in range(1000)]
    assert len(encoded(dict.fromkeys(names, (0.123456, 123456789.0)))) < 40_000
