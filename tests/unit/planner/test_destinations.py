import pytest

from ballast.model import Constraints, Executor, Taint, Toleration
from ballast.planner.leveling import destinations
from tests.builders import a_node, a_snapshot, an_executor

RESERVED, DEDICATED = Taint("reserved", "", "NoSchedule"), Taint("dedicated", "streams", "NoExecute")


def an_executor_that_tolerates(name: str, *keys: str) -> Executor:
    tolerations = tuple(Toleration(key, "Exists") for key in keys)
    return an_executor(name, constraints=Constraints(tolerations=tolerations))


@pytest.mark.parametrize(
    ("tolerated", "expected"),
    [
        ([], {"plain"}),
        ([()], {"plain"}),
        ([(), ("dedicated",)], {"plain", "dedicated"}),
        ([("dedicated",), ("reserved",)], {"plain", "dedicated"}),
        ([("dedicated", "reserved")], {"plain", "dedicated", "both"}),
    ],
)
def test_a_tainted_node_takes_where_somebody_tolerates_all_its_taints(
    tolerated: list[tuple[str, ...]], expected: set[str]
) -> None:
    nodes = (
        a_node("plain"),
        a_node("dedicated", taints=(DEDICATED,)),
        a_node("both", taints=(RESERVED, DEDICATED)),
        a_node("cordoned", schedulable=False),
    )
    executors = tuple(an_executor_that_tolerates(f"e-{i}", *keys) for i, keys in enumerate(tolerated))
    assert destinations(a_snapshot(*nodes, executors=executors)) == expected
