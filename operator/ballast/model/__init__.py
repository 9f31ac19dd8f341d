"""The values that decisions are made of: frozen, plain, and free of any framework."""

from ballast.model.constraints import Constraints, Requirement, Taint, Toleration
from ballast.model.executor import Executor, ExecutorUsage, Phase, Workload
from ballast.model.gap import Gap
from ballast.model.location import DEFAULT_LEVELS, Level, Levels, Location, Pin, Scope
from ballast.model.memory import Attempts, Memory, NodeHits
from ballast.model.move import Move, MovePhase
from ballast.model.node import Node, NodeUsage
from ballast.model.plan import (
    Hold,
    LocalityView,
    NodeView,
    Placement,
    Plan,
    PlannedMove,
    PoolView,
    Refusal,
)
from ballast.model.policy import (
    AvgShedderPolicy,
    Budget,
    ComponentLimit,
    ExecutorOrder,
    Exit,
    LoadUnit,
    MovesMode,
    MovesPolicy,
    PlacementMode,
    PlacementPolicy,
    Policy,
    SheddingPolicy,
    Weights,
)
from ballast.model.reason import Reason
from ballast.model.resources import Resources
from ballast.model.snapshot import Demand, MetricsHealth, Snapshot
from ballast.model.topology import Anchor, Component, Grouping, Separation, Stream, Topology

__all__ = [
    "DEFAULT_LEVELS",
    "Anchor",
    "Attempts",
    "AvgShedderPolicy",
    "Budget",
    "Component",
    "ComponentLimit",
    "Constraints",
    "Demand",
    "Executor",
    "ExecutorOrder",
    "ExecutorUsage",
    "Exit",
    "Gap",
    "Grouping",
    "Hold",
    "Level",
    "Levels",
    "LoadUnit",
    "LocalityView",
    "Location",
    "Memory",
    "MetricsHealth",
    "Move",
    "MovePhase",
    "MovesMode",
    "MovesPolicy",
    "Node",
    "NodeHits",
    "NodeUsage",
    "NodeView",
    "Phase",
    "Pin",
    "Placement",
    "PlacementMode",
    "PlacementPolicy",
    "Plan",
    "PlannedMove",
    "Policy",
    "PoolView",
    "Reason",
    "Refusal",
    "Requirement",
    "Resources",
    "Scope",
    "Separation",
    "SheddingPolicy",
    "Snapshot",
    "Stream",
    "Taint",
    "Toleration",
    "Topology",
    "Weights",
    "Workload",
]
