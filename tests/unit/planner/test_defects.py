from __future__ import annotations

from typing import Any

import pytest

from ballast.api import BalancingPolicy
from ballast.planner.defects import defect


def with_budget(**budget: Any) -> BalancingPolicy:
    return BalancingPolicy.parse(
        {
            "apiVersion": "ballast.dev/v1alpha1",
            "kind": "BalancingPolicy",
            "metadata": {"name": "streaming"},
            "spec": {
                "nodeSelector": {"matchLabels": {"pool": "streaming"}},
                "moves": {"budgets": [{"moves": 6, "per": "1h"}, {"moves": 0, "duration": "2h", **budget}]},
            },
        }
    )


@pytest.mark.parametrize(
    "budget",
    [
        {"schedule": "0 8 * * 1-5"},
        {"schedule": "*/5 * * * *", "timeZone": "Europe/Berlin"},
        {"schedule": "0 0 29 2 *", "timeZone": "UTC"},
    ],
)
def test_a_schedule_that_comes_is_fine(budget: dict[str, str]) -> None:
    assert defect(with_budget(**budget)) is None


@pytest.mark.parametrize(
    ("budget", "field"),
    [
        ({"schedule": "61 * * * *"}, "schedule"),
        ({"schedule": "0 8 * * 9"}, "schedule"),
        ({"schedule": "0 0 31 2 *"}, "schedule"),
        ({"schedule": "0 8 * * *", "timeZone": "Mars/Olympus"}, "timeZone"),
    ],
)
def test_what_never_comes_names_the_field_the_value_and_the_remedy(budget: dict[str, str], field: str) -> None:
    found = defect(with_budget(**budget))
    assert found is not None
    assert str(found).startswith(f"spec.moves.budgets[1].{field}: {budget[field]!r}: ")
    assert "write " in found.remedy
