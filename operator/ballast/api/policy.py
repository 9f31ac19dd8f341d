"""BalancingPolicy: one pool of nodes and how it is kept level."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, PrivateAttr

from ballast.api.duration import Between, Duration, comparing
from ballast.api.labels import LabelSelector
from ballast.api.meta import Model, Resource, nested
from ballast.api.names import DnsLabel, LabelKey
from ballast.api.policy_metrics import Metrics
from ballast.api.policy_moves import REVERSE_COOLDOWNS, Moves
from ballast.api.policy_placement import Placement
from ballast.api.policy_shedding import Shedding
from ballast.api.policy_status import PolicyStatus
from ballast.api.profile import Profile, effective
from ballast.api.rule import SET, Rule, map_by
from ballast.api.version import API_VERSION
from ballast.enums import MovesMode, PlacementMode


class Level(Model):
    """One level of nearness: nodes with the same value of the label are near each other."""

    label: LabelKey
    """The node label that names the zone, the rack or the host."""
    distance: Annotated[int, Field(ge=0, le=1000)]
    """What crossing this level costs, relative to the others."""


_DEFAULT_LEVELS = (
    Level(label="topology.kubernetes.io/zone", distance=10),
    Level(label="topology.ballast.dev/rack", distance=3),
    Level(label="kubernetes.io/hostname", distance=1),
)


def _distances_fall(spec: PolicySpec) -> bool:
    distances = [level.distance for level in spec.levels]
    return distances == sorted(distances, reverse=True)


def _thresholds_rise(spec: PolicySpec) -> bool:
    shedder = spec.shedding.avg_shedder
    return shedder is None or shedder.low_threshold < shedder.high_threshold


_COOLDOWN = effective("moves.cooldown")
_LOWER_THRESHOLD = (
    "!has(self.shedding.avgShedder)"
    f" || {effective('shedding.avg_shedder.low_threshold')} < {effective('shedding.avg_shedder.high_threshold')}"
)
_KEPT_A_DAY = comparing("duration(self.moves.ttlAfterFinished) >= duration('24h')", "self.moves.ttlAfterFinished")
_KEPT_AS_LONG = comparing(
    "duration(self.moves.ttlAfterFinished) >= duration(b.per)", "self.moves.ttlAfterFinished", "b.per"
)
# The longest budget of every profile is that of a day.
_BUDGETS_KEPT = f"has(self.moves.budgets) ? self.moves.budgets.all(b, !has(b.per) || {_KEPT_AS_LONG}) : ({_KEPT_A_DAY})"


class PolicySpec(Model):
    """One pool of nodes and how it is kept level."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel=comparing(
                "duration(self.moves.settle) >= duration(self.metrics.window) + duration(self.interval)",
                "self.moves.settle",
                "self.metrics.window",
                "self.interval",
            ),
            message="moves.settle must be at least metrics.window + interval, so that a move is judged by metrics from"
            " after it: raise moves.settle or shorten the others",
            holds=lambda spec: (
                spec.moves.settle.nanoseconds >= spec.metrics.window.nanoseconds + spec.interval.nanoseconds
            ),
            path=".moves.settle",
        ),
        Rule(
            cel="(size(self.levels) < 2 || self.levels[0].distance >= self.levels[1].distance)"
            " && (size(self.levels) < 3 || self.levels[1].distance >= self.levels[2].distance)"
            " && (size(self.levels) < 4 || self.levels[2].distance >= self.levels[3].distance)",
            message="levels go from far to near: order them so that no distance is larger than the one before it",
            holds=_distances_fall,
            path=".levels",
        ),
        Rule(
            cel=_LOWER_THRESHOLD,
            message="lowThreshold must be below highThreshold: lower the one or raise the other",
            holds=_thresholds_rise,
            path=".shedding.avgShedder.lowThreshold",
        ),
        Rule(
            cel=_BUDGETS_KEPT,
            message="ttlAfterFinished must be at least every budget's per, since budgets are counted from ended moves:"
            " raise ttlAfterFinished",
            holds=lambda spec: all(
                budget.per is None or spec.moves.ttl_after_finished >= budget.per for budget in spec.moves.budgets
            ),
            path=".moves.ttlAfterFinished",
        ),
        Rule(
            cel=comparing(
                "duration(self.moves.ttlAfterFinished).getSeconds()"
                f" >= {REVERSE_COOLDOWNS} * duration({_COOLDOWN}).getSeconds()",
                "self.moves.ttlAfterFinished",
                _COOLDOWN,
            ),
            message=f"ttlAfterFinished must be at least {REVERSE_COOLDOWNS} times cooldown, since for so long ended"
            " moves keep others from going back: raise ttlAfterFinished or shorten cooldown",
            holds=lambda spec: (
                int(spec.moves.ttl_after_finished.seconds) >= REVERSE_COOLDOWNS * int(spec.moves.cooldown.seconds)
            ),
            path=".moves.ttlAfterFinished",
        ),
    )

    profile: Profile = Profile.BALANCED
    """Conservative, Balanced or Aggressive: how large a gap must be, and how many moves there may be.

    A field that is set explicitly wins; `kubectl ballast explain policy/NAME` shows what the profile sets. Balanced and
    Aggressive may place all executors of a job in one zone, which costs the least traffic; losing that zone stops the
    job until its executors run elsewhere. Conservative keeps at most two thirds of a component in one zone.
    """

    stopped: bool = False
    """Whether the policy does nothing at all: it gates, places, nominates and moves nothing, not even approved moves,
    and releases gated executors as they are. `kubectl ballast stop` and `start` write it."""
    node_selector: LabelSelector = nested(LabelSelector)
    """The pool's nodes. Default: all nodes. Pools must not overlap: of two that do, the younger policy does nothing."""
    namespace_selector: LabelSelector = nested(LabelSelector)
    """The namespaces whose executors this policy steers; all by default. Of several that could place an executor, the
    oldest that enforces placement and has a node for it does."""
    topology_selector: LabelSelector | None = None
    """If set, only these SparkTopologies are steered."""
    external_namespaces: Annotated[tuple[DnsLabel, ...], Field(max_length=64), SET] = ()
    """Namespaces where external components may be observed, besides a topology's own."""
    interval: Annotated[Duration, Between("1s", "1h")] = Duration.parse("60s")
    """Time between two full passes over the pool, from 1s to 1h."""
    levels: Annotated[tuple[Level, ...], Field(min_length=1, max_length=4), map_by("label")] = _DEFAULT_LEVELS
    """Levels of nearness from far to near; a node without a label has that level off. By default zone, rack, host."""
    metrics: Metrics = nested(Metrics)
    """The source of the metrics, and how long they are valid."""
    placement: Placement = nested(Placement)
    """How executors are placed when they are created."""
    shedding: Shedding = nested(Shedding)
    """What should leave a hot node."""
    moves: Moves = nested(Moves)
    """When, how often and how executors are moved."""

    # The blocks whose modes `stopped` overrides, without that.
    _started: dict[str, Model] = PrivateAttr(default_factory=dict)

    def model_post_init(self, _context: Any) -> None:
        """Fill in what the profile sets, before the rules are checked."""
        blocks: dict[str, Model] = {
            "placement": self.placement.under(self.profile),
            "shedding": self.shedding.under(self.profile),
            "moves": self.moves.under(self.profile),
        }
        if self.stopped:
            # Here, so that no reader of a mode need know of it.
            off = {"placement": PlacementMode.DISABLED, "moves": MovesMode.DISABLED}
            self._started = {name: blocks[name] for name in off}
            blocks |= {name: blocks[name].model_copy(update={"mode": mode}) for name, mode in off.items()}
        self.__dict__.update(blocks)

    def as_written(self) -> PolicySpec:
        """With the modes that its owner wrote, which count again once it is started."""
        found = self.model_copy()
        found.__dict__.update(self._started)
        return found


class BalancingPolicy(Resource):
    """One pool of nodes, how executors are placed on it and how it is kept level."""

    api_version: Literal["ballast.dev/v1alpha1"] = API_VERSION
    kind: Literal["BalancingPolicy"] = "BalancingPolicy"
    spec: PolicySpec
    """How the pool is kept level. Yours: Ballast never writes it."""
    status: PolicyStatus = Field(default_factory=PolicyStatus)
    """The state of the pool."""
