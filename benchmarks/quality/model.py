"""A mixed-integer model, and what HiGHS finds of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

SOLVED, INFEASIBLE = 0, 2
"""What `milp` says has become of a model."""


@dataclass(slots=True)
class Model:
    """Variables that are not negative, what each costs, and rows of bounds on sums of them."""

    costs: list[float] = field(default_factory=list)
    rows: list[tuple[dict[int, float], float, float]] = field(default_factory=list)
    integral: list[int] = field(default_factory=list)

    def variable(self, cost: float = 0.0, *, integral: bool) -> int:
        self.costs.append(cost)
        self.integral.append(int(integral))
        return len(self.costs) - 1

    def row(self, terms: dict[int, float], low: float, high: float) -> None:
        self.rows.append((terms, low, high))

    def matrix(self) -> LinearConstraint:
        entries = [(r, c, v) for r, (terms, _, _) in enumerate(self.rows) for c, v in terms.items()]
        where_row, where_column, values = zip(*entries, strict=True)
        shape = (len(self.rows), len(self.costs))
        table = coo_array((values, (where_row, where_column)), shape=shape).tocsr()
        return LinearConstraint(table, [low for _, low, _ in self.rows], [high for _, _, high in self.rows])


def solved(model: Model, seconds: float) -> Any:
    """What the solver says of the least cost: `status` 0 when it is proved, `fun`."""
    return milp(
        np.array(model.costs),
        constraints=model.matrix(),
        integrality=np.array(model.integral),
        bounds=Bounds(0, np.inf),
        options={"time_limit": seconds, "mip_rel_gap": 0.0},
    )
