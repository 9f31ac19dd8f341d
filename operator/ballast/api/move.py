"""ExecutorMove: one move, its state and its trail."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ballast.api.condition import Conditions
from ballast.api.meta import Model, Resource, StatusModel
from ballast.api.names import Count, Decimal, DnsLabel, Number, ObjectName, Score, Text, Uid, Word
from ballast.api.quantity import Quantity
from ballast.api.rule import Rule
from ballast.api.version import API_VERSION
from ballast.enums import MovePhase

MOST_REQUESTS = 20
"""Kinds of resources that are noted of an executor."""


def _kept(field: str) -> Rule:
    return Rule(
        cel=f"has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || self.{field} == oldSelf.{field})",
        message=f"{field} can't be changed: delete this ExecutorMove and create another",
        holds=None,
        path=f".{field}",
    )


class ExecutorRef(Model):
    """One executor's pod, exactly this one."""

    pod: ObjectName
    """The pod's name."""
    uid: Uid
    """The pod's uid, so that no namesake is ever moved."""


class ReasonScores(Model):
    """Scores at the time of the decision, what was on its way included."""

    from_: Decimal
    """Of the node to leave."""
    to: Decimal
    """Of the destination."""
    mean: Decimal | None = None
    """Mean of the pool."""


class ReasonHits(Model):
    """Hit counts at the time of the decision."""

    low: Count = 0
    """Low hits."""
    high: Count = 0
    """High hits."""


class MoveReason(Model):
    """Why the move was decided."""

    strategy: Word | None = None
    """The strategy that suggested it; Drain for a node that is about to go, Manual for a move made by hand."""
    taint: Word | None = None
    """The taint for which its node is emptied."""
    scores: ReasonScores | None = None
    """Scores at that time."""
    difference: Decimal | None = None
    """The gap in points."""
    hits: ReasonHits | None = None
    """Hit counts at that time."""
    slowness: Decimal | None = None
    """Seconds per task against the fastest quarter of its application on other nodes, where measured."""
    pressure: Decimal | None = None
    """Share of time in which something waited for CPU on the node to leave, where measured."""


class Prediction(Model):
    """What the move should bring."""

    hot_after: Decimal
    """Score of the node that was left."""
    cold_after: Decimal
    """Score of the destination."""
    locality_delta: Decimal | None = None
    """Change of the cost of traffic, as a share; below 0 is nearer."""


class MoveSpec(Model):
    """One executor, from one node to another. Can't be changed, except for approved: false to true."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="self.sourceNodeName != self.targetNodeName",
            message="targetNodeName must differ from sourceNodeName: name the node to move the executor to",
            holds=lambda spec: spec.source_node_name != spec.target_node_name,
            path=".targetNodeName",
        ),
        *(
            _kept(field)
            for field in (
                "policyName",
                "topologyName",
                "component",
                "executor",
                "sourceNodeName",
                "targetNodeName",
                "reason",
                "predicted",
            )
        ),
        Rule(
            cel="!oldSelf.approved || self.approved",
            message="approved can't be taken back: delete this ExecutorMove to stop it",
            holds=None,
            path=".approved",
        ),
    )

    policy_name: ObjectName | None = None
    """The BalancingPolicy whose budgets it counts against. Default: that of the node's pool."""
    topology_name: ObjectName
    """The SparkTopology's name, or the application's id where there is none."""
    component: DnsLabel | None = None
    """The component's name."""
    executor: ExecutorRef
    """The executor to move."""
    source_node_name: ObjectName
    """The node to leave."""
    target_node_name: ObjectName
    """The node that the replacement goes to."""
    approved: bool = False
    """Whether the move may begin. May be set to true, never back."""
    reason: MoveReason | None = None
    """Why the move was decided."""
    predicted: Prediction | None = None
    """What the move should bring."""


class Subject(StatusModel):
    """What the executor was, by which its replacement is recognized."""

    application: Word = ""
    """The application's id."""
    resource_profile: Word = ""
    """Its resource profile's id."""
    executor_id: Word = ""
    """The executor's id within the application."""
    requests: Annotated[dict[str, Quantity], Field(max_length=MOST_REQUESTS)] = Field(default_factory=dict)
    """What it requested: the move keeps as much free for its replacement."""


class Replacement(StatusModel):
    """The executor that came instead."""

    pod: Word
    """Its pod."""
    uid: Word
    """Its pod's uid."""
    node: Word = ""
    """Where it runs."""
    pinned: bool = True
    """Whether it was tied to the destination, or to its zone; false if it had to be released without."""
    displaced: bool = False
    """Whether another pod took its room on the destination, so that it runs on another node."""
    claimed: datetime | None = None
    """When it was recognized."""


class Measured(StatusModel):
    """What the move brought."""

    hot_before: Score | None = None
    """Score of the node that was left, right before."""
    cold_before: Score | None = None
    """Score of the destination, right before."""
    hot_after: Score | None = None
    """Score of the node that was left."""
    cold_after: Score | None = None
    """Score of the destination."""
    gain: Number | None = None
    """Points by which the gap narrowed; below 0 if it widened."""
    slowness_before: Score | None = None
    """Seconds per task of the executor against the fastest quarter of its application on other nodes, before."""
    slowness_after: Score | None = None
    """The same of the replacement."""
    batch_p50_before: Annotated[Score | None, Field(alias="batchP50Before")] = None
    """Median of the batch duration before, in seconds."""
    batch_p50_after: Annotated[Score | None, Field(alias="batchP50After")] = None
    """Median of the batch duration after, in seconds."""
    batch_p95_before: Annotated[Score | None, Field(alias="batchP95Before")] = None
    """95th percentile of the batch duration before, in seconds."""
    batch_p95_after: Annotated[Score | None, Field(alias="batchP95After")] = None
    """95th percentile of the batch duration after, in seconds."""


class Timings(StatusModel):
    """When each phase began."""

    proposed: datetime | None = None
    """When it was proposed."""
    approved: datetime | None = None
    """When it was approved."""
    leaving: datetime | None = None
    """When the executor was asked to leave."""
    arriving: datetime | None = None
    """When the executor was gone."""
    settling: datetime | None = None
    """When the replacement ran."""
    ended: datetime | None = None
    """When the move ended."""


class MoveStatus(StatusModel):
    """Where the move stands."""

    observed_generation: Annotated[int, Field(ge=-1)] = -1
    """The generation of the spec that this status is about; -1 before the operator has seen it."""
    phase: MovePhase | None = None
    """Proposed, Approved, Leaving, Arriving, Settling, Succeeded, Failed, Expired or Refused."""
    reason: Word = ""
    """Why it stands there, as one stable word."""
    message: Text = ""
    """Why, in words for people."""
    conditions: Conditions = ()
    """Ready; and, when so, Reconciling, Stalled, Withdrawn."""
    target_node_name: Word = ""
    """The node that the replacement goes to now, if it is no longer spec.targetNodeName."""
    subject: Subject | None = None
    """What the executor was, by which its replacement is recognized."""
    replacement: Replacement | None = None
    """The executor that came instead."""
    measured: Measured | None = None
    """What the move brought."""
    timings: Timings | None = None
    """When each phase began."""
    attempts: Count = 0
    """Replacements that stayed unschedulable and were placed again."""


class ExecutorMove(Resource):
    """One move of one executor from one node to another: its state, and afterwards its trail."""

    api_version: Literal["ballast.dev/v1alpha1"] = API_VERSION
    kind: Literal["ExecutorMove"] = "ExecutorMove"
    spec: MoveSpec
    """The move. Can't be changed, except for approved: false to true."""
    status: MoveStatus = Field(default_factory=MoveStatus)
    """Where the move stands."""
