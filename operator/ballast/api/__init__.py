"""The custom resources: SparkTopology, BalancingPolicy, ExecutorMove and GateSwitch."""

from ballast.api.duration import Duration
from ballast.api.gate import GateSwitch
from ballast.api.labels import LabelSelector
from ballast.api.meta import API_VERSION, GROUP, VERSION
from ballast.api.move import ExecutorMove
from ballast.api.policy import BalancingPolicy
from ballast.api.quantity import Quantity
from ballast.api.topology import SparkTopology

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
