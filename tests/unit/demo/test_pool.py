import pytest

from examples.demo.pool import nodes, pool_nodes, spread


def test_the_pool_is_eight_nodes_of_two_sizes_in_two_zones_and_three_racks() -> None:
    pool = pool_nodes()
    assert len(pool) == 8
    assert {node.cpu_quota_cores for node in pool} == {0.4, 0.2}
    assert len({node.zone for node in pool}) == 2
    assert len({node.rack for node in pool}) == 3
    assert len(nodes()) == 9


@pytest.mark.parametrize(
    ("placed", "zones", "racks"),
    [
        ([], 0.0, 0.0),
        (["large-b1-1"] * 6, 0.0, 0.0),
        (["small-a1-1"] * 3 + ["small-a2-1"] * 3, 0.0, 0.5),
        (["large-b1-1"] * 3 + ["small-a1-1"] * 3, 0.5, 0.5),
        (["small-a1-1", "small-a2-1", "large-b1-1", "large-b1-2"], 0.5, 0.625),
    ],
)
def test_what_crosses_follows_from_where_the_executors_are(placed: list[str], zones: float, racks: float) -> None:
    found = spread(placed, pool_nodes())
    assert found.cross_zone_ratio == pytest.approx(zones)
    assert found.cross_rack_ratio == pytest.approx(racks)
