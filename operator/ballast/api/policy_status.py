"""The status of a BalancingPolicy: the state of its pool, what counts towards moves, what was refused."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from ballast.api.condition import Conditions
from ballast.api.meta import StatusModel
from ballast.api.names import Count, Number, Score, Text, Word
from ballast.api.rule import ATOMIC, map_by
from ballast.api.topology_status import Placement

SHOWN = 20
"""How many pairs, recommendations and refusals are shown; the rest is counted."""


class NodeScore(StatusModel):
    """A node and its score."""

    name: Word
    """The node's name."""
    score: Score
    """Its score, 0 to 100 and beyond."""


class NodesStatus(StatusModel):
    """The pool's nodes."""

    total: Count = 0
    """Nodes in the pool."""
    eligible: Count = 0
    """Nodes that take part: those with fresh metrics. No executor moves to a node that is cordoned or not ready."""
    stale: Count = 0
    """Nodes without fresh metrics."""
    mean: Score | None = None
    """Mean score of the eligible nodes."""
    std_dev: Score | None = None
    """Standard deviation of their scores."""
    gap: Score | None = None
    """Score of the hottest less that of the coldest."""
    hottest: NodeScore | None = None
    """The hottest node."""
    coldest: NodeScore | None = None
    """The coldest node."""


class NodeHits(StatusModel):
    """How often in a row a node was part of too wide a gap."""

    node: Word
    """The node's name."""
    low: Count = 0
    """Low hits."""
    high: Count = 0
    """High hits."""
    last_time: datetime | None = None
    """When the last one counted."""


class Pair(StatusModel):
    """A hot node and the cold one that it is paired with."""

    hot: Word
    """The hot node."""
    cold: Word
    """The cold node."""
    hot_score: Score
    """The hot node's score."""
    cold_score: Score
    """The cold node's score."""
    low_hits: Count = 0
    """Low hits so far."""
    high_hits: Count = 0
    """High hits so far."""


class Pairs(StatusModel):
    """Pairs with too wide a gap."""

    items: Annotated[tuple[Pair, ...], Field(max_length=SHOWN), ATOMIC] = ()
    """The widest."""
    more: Count = 0
    """How many more there are."""


class MoveRecommendation(StatusModel):
    """A move that would help."""

    namespace: Word
    """The executor's namespace."""
    topology: Word = ""
    """Its topology."""
    component: Word = ""
    """Its component."""
    executor: Word
    """The executor's pod."""
    from_: Word
    """The node to leave."""
    to: Word
    """The node to go to."""
    gain: Number
    """Points by which the gap would narrow."""
    message: Text = ""
    """Why."""


class MoveRecommendations(StatusModel):
    """Moves that would help."""

    items: Annotated[tuple[MoveRecommendation, ...], Field(max_length=SHOWN), ATOMIC] = ()
    """Those with the largest gain."""
    more: Count = 0
    """How many more there are."""


class Refusal(StatusModel):
    """A move that was suggested and refused."""

    reason: Word
    """Why, as one stable word."""
    namespace: Word = ""
    """The executor's namespace."""
    executor: Word = ""
    """The executor's pod."""
    from_: Word = ""
    """The node to leave."""
    to: Word = ""
    """The node to go to, where one was chosen."""
    message: Text = ""
    """Why, in words for people, with the values."""
    count: Count = 1
    """How many executors were refused for this reason."""
    last_time: datetime | None = None
    """When it was last refused."""


class Refusals(StatusModel):
    """Moves that were suggested and refused."""

    items: Annotated[tuple[Refusal, ...], Field(max_length=SHOWN), ATOMIC] = ()
    """The latest."""
    more: Count = 0
    """How many more there are."""


class BudgetStatus(StatusModel):
    """What is left of the tightest budget."""

    used: Count = 0
    """Moves that count against it now."""
    remaining: Count = 0
    """Moves still allowed."""
    next_reset: datetime | None = None
    """When the next move becomes allowed again."""


class ApplicationPlacement(StatusModel):
    """Where the executors of an application without a SparkTopology are."""

    namespace: Word
    """The application's namespace."""
    application: Word
    """The application's id."""
    placement: Placement = Field(default_factory=dict)
    """Executors per component and node, to which replacements return."""


class Attempt(StatusModel):
    """A component whose executors had to be placed again, because their place could not run them."""

    topology: Word
    """Namespace and name of its topology."""
    component: Word
    """Its name."""
    count: Count = 0
    """How often; after three times the places of its executors are preferred for a while, not required."""
    last_time: datetime | None = None
    """When it was last."""


class ApplicationFailures(StatusModel):
    """An application of which executors failed."""

    namespace: Word
    """The application's namespace."""
    application: Word
    """The application's id."""
    count: Count = 0
    """How many executors failed. Those whose pods were deleted first, as by a move, do not count."""
    executors: Annotated[tuple[Annotated[int, Field(ge=0, le=2**31 - 1)], ...], Field(max_length=25), ATOMIC] = ()
    """Ids of the latest of them, so that none is counted twice."""


class PolicyStatus(StatusModel):
    """The state of the pool, what counts towards moves, and what was refused."""

    observed_generation: Annotated[int, Field(ge=-1)] = -1
    """The generation of the spec that this status is about; -1 before the operator has seen it."""
    conditions: Conditions = ()
    """Ready, MetricsAvailable, Balanced; and, when so, Stalled, Paused, Gating (False: the gate switch stays off),
    ExecutorsPlaced (False: executors that opted in are not placed, with counts by cause), MovesPossible (False:
    moves are on, but placement is not enforced), LevelsFound (False: a level's label is on no node), TopologiesFound
    (False: a label of executors names no SparkTopology), NamespacesFollowed (False: passes leave namespaces out, with
    whose objects they fail), MovesLimited (limits on moves keep executors on hot nodes)."""
    nodes: NodesStatus | None = None
    """The pool's nodes."""
    hits: Annotated[tuple[NodeHits, ...], Field(max_length=400), map_by("node")] = ()
    """How often in a row nodes were part of too wide a gap; those without a hit are left out."""
    pairs: Pairs | None = None
    """Pairs with too wide a gap."""
    recommendations: MoveRecommendations | None = None
    """Moves that would help, where moves are only recommended."""
    refusals: Refusals | None = None
    """Moves that were suggested and refused."""
    budget: BudgetStatus | None = None
    """What is left of the tightest budget."""
    moved: Count | None = None
    """Moves that succeeded in the last 24 hours."""
    applications: Annotated[
        tuple[ApplicationPlacement, ...], Field(max_length=32), map_by("namespace", "application")
    ] = ()
    """Where the executors of applications without a SparkTopology are, the latest ones."""
    attempts: Annotated[tuple[Attempt, ...], Field(max_length=64), map_by("topology", "component")] = ()
    """Components whose executors had to be placed again lately."""
    failures: Annotated[tuple[ApplicationFailures, ...], Field(max_length=32), map_by("namespace", "application")] = ()
    """Applications of which executors failed, so that a restarted operator goes on counting; see
    moves.maxFailurePercent. Of too many, those with the most failures in each namespace."""
    state: Annotated[dict[str, Annotated[str, Field(max_length=32_768)]], Field(max_length=8)] = Field(
        default_factory=dict
    )
    """What strategies remember (hits and averages), so that a restarted operator carries on. Not for people."""
