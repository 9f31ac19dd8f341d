import pytest

from ballast.model import Weights


@pytest.mark.parametrize(("weight", "cores", "points"), [(1.0, 4.0, 25.0), (0.5, 4.0, 12.5), (1.0, 0.0, 0.0)])
def test_a_core_of_load_makes_its_share_of_the_nodes_capacity_in_weighted_points(
    weight: float, cores: float, points: float
) -> None:
    assert Weights(cpu=weight).points_per_core(cores) == points
