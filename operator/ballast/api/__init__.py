"""The custom resources: SparkTopology, BalancingPolicy, ExecutorMove and GateSwitch.

Each name is loaded when it is first used: a command that needs no model does not wait for pydantic.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ballast.api.duration import Duration
    from ballast.api.gate import GateSwitch
    from ballast.api.labels import LabelSelector
    from ballast.api.move import ExecutorMove
    from ballast.api.policy import BalancingPolicy
    from ballast.api.quantity import Quantity
    from ballast.api.topology import SparkTopology
    from ballast.api.version import API_VERSION, GROUP, VERSION

__all__ = [
    "API_VERSION",
    "GROUP",
    "VERSION",
    "BalancingPolicy",
    "Duration",
    "ExecutorMove",
    "GateSwitch",
    "LabelSelector",
    "Quantity",
    "SparkTopology",
]

_HOMES = {
    "API_VERSION": "version",
    "GROUP": "version",
    "VERSION": "version",
    "BalancingPolicy": "policy",
    "Duration": "duration",
    "ExecutorMove": "move",
    "GateSwitch": "gate",
    "LabelSelector": "labels",
    "Quantity": "quantity",
    "SparkTopology": "topology",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
