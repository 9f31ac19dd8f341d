"""What pods ask for and nodes offer, read from their JSON."""

from __future__ import annotations

import marshal
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from ballast.api.quantity import Quantity
from ballast.kube.document import JSON, ReadOnlyJSON
from ballast.kube.shared_values import SharedValues
from ballast.model import Resources

_Amounts = dict[str, float]
_QUANTITIES = 50_000
"""Texts whose amount is remembered."""
_COUNTABLE = 2.0**63
_COUNTABLE_CORES = _COUNTABLE / 1000
"""kube-scheduler and kubelets count in 64 bits, CPU in thousandths, and take what is not less for nothing."""


class AmountReader:
    """Reads quantities, each distinct text once; pods of one template share one value.

    Not safe for threads: one reader belongs to one pass at a time.
    """

    def __init__(self) -> None:
        self._parsed = lru_cache(_QUANTITIES)(lambda text: float(Quantity.parse(text)))
        self._requests: SharedValues[Resources] = SharedValues()

    def amounts(self, written: ReadOnlyJSON | None) -> _Amounts:
        return {name: self.quantity(value) for name, value in (written or {}).items()}

    def quantity(self, written: Any) -> float:
        return self._parsed(str(written))

    def allocatable(self, node: JSON) -> Resources:
        amounts = self.amounts((node.get("status") or {}).get("allocatable"))
        return self._resources(amounts, pods=amounts.pop("pods", 0.0))

    def requests(self, pod: JSON) -> Resources:
        """What the scheduler reserves for the pod.

        The larger of what its containers and sidecars ask for together, and of any one init container next to the
        sidecars started before it; plus overhead. Amounts set for the whole pod replace the sum. While a container
        is being resized in place, the larger of the old and the new amount counts; the old one alone once the kubelet
        has said that its node can never give the new one (a user may ask for any). So it is with amounts set for the
        whole pod. Of a pod that is bound, amounts count for nothing that are too large for kube-scheduler to count: it
        binds such pods, and their nodes would look full for good.
        """
        spec, status = pod["spec"], pod.get("status") or {}
        return self._requests.of(_key(spec, status), lambda: self._resources(self._counted(spec, status), pods=1.0))

    def _counted(self, spec: JSON, status: JSON) -> _Amounts:
        amounts = self._pod_amounts(spec, status)
        return (
            {name: amount for name, amount in amounts.items() if _countable(name, amount)} if _bound(spec) else amounts
        )

    def _resources(self, amounts: _Amounts, *, pods: float) -> Resources:
        cpu_cores, memory_bytes = amounts.pop("cpu", 0.0), amounts.pop("memory", 0.0)
        extended = sorted((name, amount) for name, amount in amounts.items() if amount)
        return Resources(cpu_cores, memory_bytes, pods, tuple(extended))

    def _pod_amounts(self, spec: JSON, status: JSON) -> _Amounts:
        actual = {
            entry["name"]: entry
            for entry in (*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ()))
        }
        feasible = not _infeasible(status)
        running = _sum(self._container(c, actual.get(c["name"]), feasible=feasible) for c in spec["containers"])
        starting: _Amounts = {}
        sidecars: _Amounts = {}
        # In linear time: a pod may have thousands of sidecars, each of which requests another resource.
        for container in spec.get("initContainers") or ():
            own = self._container(container, actual.get(container["name"]), feasible=feasible)
            if container.get("restartPolicy") == "Always":
                _add(sidecars, own)
                continue
            for name, amount in own.items():
                starting[name] = max(starting.get(name, 0.0), sidecars.get(name, 0.0) + amount)
        total = _largest(_sum((running, sidecars)), starting)
        whole = self._container(spec, status if status.get("resources") else None, feasible=feasible)
        set_for_all = (spec.get("resources") or {}).get("requests") or ()
        total.update({name: whole[name] for name in set_for_all if name in whole})
        return _sum((total, self.amounts(spec.get("overhead"))))

    def _container(self, container: JSON, actual: JSON | None, *, feasible: bool) -> _Amounts:
        """Of a container, or of what is set for the whole pod: `spec` and `status` have the same fields."""
        asked = self.amounts((container.get("resources") or {}).get("requests"))
        if actual is None:
            return asked
        given = self.amounts((actual.get("resources") or {}).get("requests"))
        allocated = self.amounts(actual.get("allocatedResources"))
        if not feasible:
            return _largest(given, allocated)
        return _largest(_largest(asked, given), allocated) if given or allocated else asked


def _key(spec: JSON, status: JSON) -> bytes:
    """Equal for pods that ask for the same. Version 2 of the format does not depend on object identity."""
    parts = [spec.get("overhead"), spec.get("resources"), _infeasible(status), _bound(spec)]
    parts += [status.get("resources"), status.get("allocatedResources")]
    parts += [[c["name"], c.get("resources")] for c in spec["containers"]]
    parts += [[c["name"], c.get("resources"), c.get("restartPolicy")] for c in spec.get("initContainers") or ()]
    for entries in (status.get("containerStatuses"), status.get("initContainerStatuses")):
        parts += [[c["name"], c.get("resources"), c.get("allocatedResources")] for c in entries or ()]
    return marshal.dumps(parts, 2)


def _bound(spec: JSON) -> bool:
    return bool(spec.get("nodeName"))


def _countable(name: str, amount: float) -> bool:
    return amount < (_COUNTABLE_CORES if name == "cpu" else _COUNTABLE)


def _infeasible(status: JSON) -> bool:
    """Whether a resize in place was refused for good. Before Kubernetes 1.33, status.resize says so."""
    return status.get("resize") == "Infeasible" or any(
        each["type"] == "PodResizePending" and each.get("reason") == "Infeasible"
        for each in status.get("conditions") or ()
    )


def _sum(parts: Iterable[_Amounts]) -> _Amounts:
    total: _Amounts = {}
    for part in parts:
        _add(total, part)
    return total


def _add(total: _Amounts, part: _Amounts) -> None:
    for name, amount in part.items():
        total[name] = total.get(name, 0.0) + amount


def _largest(one: _Amounts, other: _Amounts) -> _Amounts:
    return {name: max(one.get(name, 0.0), other.get(name, 0.0)) for name in one.keys() | other.keys()}
