"""Amounts of what a pod asks for and a node offers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Resources:
    """CPU in cores, memory in bytes, pods as a count, anything else by its Kubernetes name."""

    cpu_cores: float = 0.0
    memory_bytes: float = 0.0
    pods: float = 0.0
    extended: tuple[tuple[str, float], ...] = ()
    """Sorted by name; absent means none."""

    def plus(self, other: Resources) -> Resources:
        return Resources(
            self.cpu_cores + other.cpu_cores,
            self.memory_bytes + other.memory_bytes,
            self.pods + other.pods,
            _merged(self.extended, other.extended, 1.0),
        )

    def minus(self, other: Resources) -> Resources:
        return Resources(
            self.cpu_cores - other.cpu_cores,
            self.memory_bytes - other.memory_bytes,
            self.pods - other.pods,
            _merged(self.extended, other.extended, -1.0),
        )

    def times(self, count: int) -> Resources:
        extended = tuple((name, amount * count) for name, amount in self.extended)
        return Resources(self.cpu_cores * count, self.memory_bytes * count, self.pods * count, extended)

    def fits_in(self, room: Resources) -> bool:
        """True when every amount asked for is there; rounding of a millionth is forgiven."""
        if self.cpu_cores > room.cpu_cores + 1e-6 or self.memory_bytes > room.memory_bytes + 1.0:
            return False
        if self.pods > room.pods + 1e-6:
            return False
        if not self.extended:
            return True
        offered = dict(room.extended)
        return all(amount <= offered.get(name, 0.0) + 1e-6 for name, amount in self.extended)


def _merged(
    left: tuple[tuple[str, float], ...], right: tuple[tuple[str, float], ...], sign: float
) -> tuple[tuple[str, float], ...]:
    if not right:
        return left
    amounts = dict(left)
    for name, amount in right:
        amounts[name] = amounts.get(name, 0.0) + sign * amount
    return tuple(sorted(amounts.items()))
