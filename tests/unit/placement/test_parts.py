"""Which components of a topology must be thought of together."""

from __future__ import annotations

import pytest

from ballast.model import Component, Resources, Stream
from ballast.placement.proximity import parts
from tests.builders import GIB, a_node, a_topology, gated
from tests.unit.placement.situations import situation


def found(*links: str, **counts: int) -> list[str]:
    """Components with streams such as `a>b`; each part as its components, twice where they have two templates."""
    waiting = [
        gated(f"{name}-{number}", component=name, requests=Resources(1.0 + number // 10, GIB, 1))
        for name, count in counts.items()
        for number in range(count)
    ]
    streams = tuple(Stream(link[0], link[-1]) for link in links)
    topology = a_topology(*(Component(name) for name in counts), streams=streams)
    _, workload = situation(*waiting, nodes=(a_node("n1"),), topologies=(topology,))
    return [
        "".join(workload.components[workload.groups[index].component] for index in part) for part in parts(workload)
    ]


@pytest.mark.parametrize(
    ("links", "expected"),
    [
        ((), ["d", "c", "b", "a"]),
        (("a>b",), ["d", "ab", "c"]),
        (("a>b", "b>c"), ["abc", "d"]),
        (("a>c", "b>c"), ["abc", "d"]),
        (("a>d", "b>c"), ["ad", "bc"]),
        (("a>b", "c>d", "b>c"), ["abcd"]),
        (("a>d", "c>d", "b>c"), ["abcd"]),
    ],
)
def test_what_exchanges_with_each_other_belongs_together_the_largest_demand_first(
    links: tuple[str, ...], expected: list[str]
) -> None:
    assert found(*links, a=1, b=2, c=3, d=4) == expected


def test_of_equal_demands_the_first_component_comes_first() -> None:
    assert found(a=2, b=2, c=2) == ["a", "b", "c"]


def test_two_templates_of_a_component_belong_together() -> None:
    assert found("a>b", a=12, b=1, c=1) == ["aab", "c"]


def test_what_exchanges_nothing_with_its_own_kind_is_a_part_all_the_same() -> None:
    waiting = [gated("a-0", component="a"), gated("b-0", component="b")]
    silent = a_topology(*(Component(name, exchange_bytes_per_second=0.0) for name in "ab"))
    _, workload = situation(*waiting, nodes=(a_node("n1"),), topologies=(silent,))
    assert parts(workload) == [[0], [1]]
