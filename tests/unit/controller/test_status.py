from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from ballast.api.topology import SparkTopology
from ballast.controller.ends import Finding
from ballast.controller.status import Outlook, policy_status, stalled_status, topology_status
from ballast.model import (
    DEFAULT_LEVELS,
    AvgShedderPolicy,
    Budget,
    ConditionReason,
    ExecutorUsage,
    Level,
    Levels,
    MetricsHealth,
    MovesMode,
    MovesPolicy,
    Node,
    Phase,
    PlacementMode,
    PlacementPolicy,
    Plan,
    PlannedMove,
    Reason,
    Refusal,
    Weights,
)
from ballast.model.policy import SheddingPolicy
from tests.builders import NOW, a_move, a_node, a_policy, a_snapshot, a_topology, an_executor, gated
from tests.unit.controller.crowd import (
    KIB,
    MANY,
    PARTS,
    busy,
    outlook,
    policy_resource,
    recommended,
    topology_resource,
)

AT_ONCE = SheddingPolicy(avg_shedder=AvgShedderPolicy(low_hits=1, high_hits=1))
PLANNED = PlannedMove(
    executor="team/exec-2",
    uid="2",
    topology="team/clicks",
    component="ingest",
    source="a",
    target="b",
    strategy="AvgShedder",
    hot_score=90.0,
    cold_score=10.0,
    hot_after=70.0,
    cold_after=30.0,
    gain=40.0,
    hits=2,
    load_cores=1.0,
)


def size(status: Any) -> int:
    return len(json.dumps(status.to_dict()).encode())


@pytest.mark.parametrize("declared", [True, False])
def test_a_policys_status_stays_small_at_a_thousand_nodes_and_ten_thousand_executors(*, declared: bool) -> None:
    found = policy_status(policy_resource(), busy(declared=declared))
    assert found.hits
    assert size(found) < 64 * KIB


@pytest.mark.parametrize("advised", [False, True])
@pytest.mark.parametrize("parts", [PARTS, MANY], ids=["few components", "many components"])
def test_a_topologys_status_stays_small_at_a_thousand_nodes_and_ten_thousand_executors(
    *, advised: bool, parts: tuple[str, ...]
) -> None:
    seen = busy(declared=True, parts=parts)
    topology = topology_status(topology_resource(*parts), recommended(seen) if advised else seen)
    placements = [topology.placement, topology.recommendation.placement if topology.recommendation else None]
    assert [sum(map(len, (places or {}).values())) > 150 for places in placements] == [True, advised]
    assert size(topology) < 64 * KIB


def test_a_policys_status_tells_the_pools_figures() -> None:
    found = policy_status(policy_resource(), outlook(a_snapshot(a_node("a", cpu=0.2), a_node("b", cpu=0.9))))
    assert found.observed_generation == 4
    assert found.nodes is not None
    assert (found.nodes.total, found.nodes.eligible, found.nodes.gap) == (2, 2, 70.0)
    assert found.nodes.hottest is not None
    assert found.nodes.hottest.name == "b"
    verdicts = {c.type: (c.status.value, c.reason) for c in found.conditions}
    assert verdicts["Balanced"] == ("False", "GapTooWide")
    assert verdicts["Ready"] == ("True", "Reconciled")
    assert verdicts["MetricsAvailable"] == ("True", "Available")


def test_a_policy_whose_selector_matches_no_node_is_not_ready() -> None:
    found = policy_status(policy_resource(), outlook(a_snapshot()))
    (verdict,) = (c for c in found.conditions if c.type == "Ready")
    assert (verdict.status.value, verdict.reason) == ("False", "NoNodes")
    assert "correct nodeSelector" in verdict.message


@pytest.mark.parametrize("mode", MovesMode)
@pytest.mark.parametrize("placement", PlacementMode)
def test_moves_that_act_without_enforced_placement_are_a_condition(mode: MovesMode, placement: PlacementMode) -> None:
    policy = a_policy(placement=PlacementPolicy(mode=placement), moves=MovesPolicy(mode=mode))
    found = policy_status(policy_resource(), outlook(a_snapshot(a_node("a")), policy))
    verdicts = {c.type: (c.status.value, c.reason) for c in found.conditions}
    in_vain = mode in ("Approve", "Enforce") and placement != "Enforce"
    assert verdicts.get("MovesPossible") == (("False", "NotEnforced") if in_vain else None)


RACK = Levels((Level("example.com/row", 3.0), Level("kubernetes.io/hostname", 1.0)))
ROWS = Levels((Level("example.com/hall", 9.0), *RACK.ordered))


@pytest.mark.parametrize(
    ("levels", "nodes", "missing"),
    [
        (DEFAULT_LEVELS, (a_node("a"), a_node("b", zone=None)), None),
        (DEFAULT_LEVELS, (a_node("a", zone=None),), "topology.kubernetes.io/zone"),
        (DEFAULT_LEVELS, (a_node("a", rack=None),), None),
        (RACK, (replace(a_node("a"), location=(None, "a")),), "example.com/row"),
        (RACK, (replace(a_node("a"), location=("1", "a")),), None),
        (ROWS, (replace(a_node("a"), location=("1", None, "a")),), "example.com/row"),
        (DEFAULT_LEVELS, (), None),
    ],
    ids=[
        "some node has it",
        "the zone",
        "the default rack",
        "a written one",
        "a written one is there",
        "a lower written one",
        "no nodes",
    ],
)
def test_a_level_whose_label_no_node_has_is_a_condition(
    levels: Levels, nodes: tuple[Node, ...], missing: str | None
) -> None:
    found = policy_status(policy_resource(), outlook(a_snapshot(*nodes), a_policy(levels=levels)))
    told = [(c.status.value, c.reason, c.message) for c in found.conditions if c.type == "LevelsFound"]
    assert [verdict[:2] for verdict in told] == ([("False", "LevelLabelMissing")] if missing else [])
    assert all(f"the label {missing}," in message for *_, message in told)


def moves_limited(refusals: tuple[Refusal, ...], *moves: PlannedMove) -> tuple[Any, Any]:
    """The condition of the policy and that of the topology team/clicks, where there is one."""
    snapshot = a_snapshot(a_node("a"), executors=(an_executor("exec-1", node="a", topology="team/clicks"),))
    seen = replace(outlook(snapshot), plan=Plan(refusals=refusals, moves=moves))
    found = policy_status(policy_resource(), seen), topology_status(topology_resource(), seen)
    policy, topology = ([c for c in status.conditions if c.type == "MovesLimited"] for status in found)
    return next(iter(policy), None), next(iter(topology), None)


SPENT = "2 of 2 moves used, in team/clicks per 86400 s, moves.budgets[1]"


def test_a_limit_that_keeps_a_pool_from_being_level_is_a_condition_with_its_figures_and_its_field() -> None:
    budget = Refusal("team/exec-1", Reason.BUDGET, SPENT)
    others = [Refusal(f"team/other-{n}", Reason.COOLDOWN, f"h1 rests {n} s more after m1") for n in range(2)]
    policy, topology = moves_limited((budget, *others))
    assert (policy.status.value, policy.reason) == ("True", "Cooldown")
    assert policy.message == (
        "limits on moves keep executors on hot nodes: 2 by Cooldown (moves.cooldown is 600 s); "
        f"1 by Budget ({SPENT}); shorten moves.cooldown, or wait"
    )
    assert topology.reason == "Budget"
    assert topology.message.endswith(f"1 by Budget ({SPENT}); raise moves or percent of that budget, or wait")


@pytest.mark.parametrize(
    ("reason", "remedy"),
    [
        (Reason.COOLDOWN, "shorten moves.cooldown"),
        (Reason.BUDGET, "raise moves or percent of that budget"),
        (Reason.MAX_CONCURRENT, "raise that field"),
    ],
)
def test_the_condition_of_a_limit_says_what_to_change(reason: Reason, remedy: str) -> None:
    policy, _ = moves_limited((Refusal("team/exec-1", reason, "2 of 2, moves.maxConcurrent"),))
    assert (policy.reason, policy.message.endswith(f"; {remedy}, or wait")) == (reason, True)


def test_topologies_whose_moves_rest_since_they_did_not_help_are_a_condition() -> None:
    seen = outlook(a_snapshot(a_node("a")))
    paused = tuple(f"team/t{number}" for number in range(9))
    found = policy_status(policy_resource(), replace(seen, plan=replace(seen.plan, paused=paused)))
    (verdict,) = (c for c in found.conditions if c.type == "Paused")
    assert (verdict.status.value, verdict.reason) == ("True", "MovesDidNotHelp")
    assert verdict.message.startswith("moves rest in team/t0, team/t1")
    assert verdict.message.endswith("more")


def test_what_is_about_to_be_moved_or_stays_for_another_reason_is_not_limited() -> None:
    budget = Refusal("team/exec-1", Reason.BUDGET, SPENT)
    assert moves_limited((replace(budget, reason=Reason.NO_ROOM),)) == (None, None)
    assert moves_limited((replace(budget, subject="a"),)) == (None, None), "later in the same pass"
    assert moves_limited((budget,), PLANNED) == (None, None)


def test_the_budget_of_a_topology_that_is_spent_is_named_by_the_pass_that_it_stops() -> None:
    hot, cold = a_node("hot", cores=8.0, cpu=0.95), a_node("cold", cores=8.0, cpu=0.1)
    usage = ExecutorUsage(cpu_cores=2.0, state_bytes=0.0)
    stays = replace(an_executor("exec-1", node="hot", topology="team/clicks"), usage=usage)
    policy = a_policy(
        shedding=AT_ONCE, moves=MovesPolicy(max_locality_loss=1.0, budgets=(Budget(0, 86400.0, "Topology"),))
    )
    snapshot = a_snapshot(hot, cold, executors=(stays,), topologies=(a_topology(key="team/clicks", name="clicks"),))
    found = policy_status(policy_resource(), outlook(snapshot, policy))
    (verdict,) = (c for c in found.conditions if c.type == "MovesLimited")
    assert "0 of 0 moves used, in team/clicks per 86400 s, moves.budgets[0]" in verdict.message


def test_labels_that_name_no_topology_are_a_condition_while_such_executors_have_not_ended() -> None:
    stray = an_executor("exec-1", node="a", unknown_topology="click")
    told = policy_status(policy_resource(), outlook(a_snapshot(a_node("a"), executors=(stray,))))
    (verdict,) = (c for c in told.conditions if c.type == "TopologiesFound")
    assert (verdict.status.value, verdict.reason) == ("False", "UnknownTopology")
    assert f"{stray.namespace}/click" in verdict.message
    ended = replace(stray, phase=Phase.ENDED)
    after = policy_status(policy_resource(told.to_dict()), outlook(a_snapshot(a_node("a"), executors=(ended,))))
    assert "TopologiesFound" not in {c.type for c in after.conditions}


def test_a_weighted_signal_that_no_node_has_is_told() -> None:
    heavy = a_policy(weights=Weights(cpu=1.0, memory=1.0))
    found = policy_status(policy_resource(), outlook(a_snapshot(a_node("a", cpu=0.2), a_node("b", cpu=0.9)), heavy))
    (verdict,) = (c for c in found.conditions if c.type == "MetricsAvailable")
    assert (verdict.status.value, verdict.reason) == ("True", "SignalDropped")
    assert verdict.message == (
        "no node has values of memory, so that does not count: see to its query, or set its weight to 0"
    )
    assert found.nodes is not None
    assert found.nodes.eligible == 2


def test_a_rate_that_no_node_has_may_be_for_lack_of_scrapes_in_the_window() -> None:
    heavy = a_policy(weights=Weights(cpu=1.0, network_receive=1.0))
    found = policy_status(policy_resource(), outlook(a_snapshot(a_node("a", cpu=0.2), a_node("b", cpu=0.9)), heavy))
    (verdict,) = (c for c in found.conditions if c.type == "MetricsAvailable")
    assert "see to its query, and that metrics.window holds three scrapes" in verdict.message


@pytest.mark.parametrize(("mode", "shown"), [(PlacementMode.ENFORCE, True), (PlacementMode.RECOMMEND, False)])
def test_a_gate_switch_that_stays_off_is_a_condition_where_placement_is_enforced(
    mode: PlacementMode, *, shown: bool
) -> None:
    seen = outlook(a_snapshot(a_node("a")), a_policy(placement=PlacementPolicy(mode=mode)))
    found = policy_status(policy_resource(), replace(seen, stays_off=True))
    verdicts = {c.type: (c.status.value, c.reason) for c in found.conditions}
    assert verdicts.get("Gating") == (("False", "SwitchOff") if shown else None)
    on_again = policy_status(policy_resource().model_copy(update={"status": found}), seen)
    assert "Gating" not in {c.type for c in on_again.conditions}


def test_conditions_keep_the_time_of_their_last_transition() -> None:
    seen = outlook(a_snapshot(a_node("a")))
    first = policy_status(policy_resource(), seen)
    later = Outlook(seen.snapshot, seen.policy, seen.plan, seen.memory, NOW + 600)
    second = policy_status(policy_resource(first.to_dict()), later)
    assert second.conditions == first.conditions


def test_refusals_are_counted_by_reason() -> None:
    lots = tuple(gated(f"exec-{i}", since=NOW - 60, enforced=False) for i in range(30))
    found = policy_status(policy_resource(), outlook(a_snapshot(a_node("a"), executors=lots))).refusals
    assert found is not None
    assert {item.reason: item.count for item in found.items}["NotEnforced"] == 30


def test_a_refusal_names_the_first_executor_that_it_is_about_and_its_way() -> None:
    cases = [Refusal(f"team/exec-{number}", Reason.DATA_SKEW, f"why {number}", target="b") for number in range(3)]
    seen = outlook(a_snapshot(a_node("a")))
    found = policy_status(policy_resource(), replace(seen, plan=replace(seen.plan, refusals=tuple(cases)))).refusals
    assert found is not None
    (item,) = found.items
    told = (item.reason, item.namespace, item.executor, item.to, item.message, item.count)
    assert told == ("DataSkew", "team", "exec-0", "b", "why 0", 3)


HOUR = 3600.0


@pytest.mark.parametrize(
    ("budgets", "ages_seconds", "told"),
    [
        pytest.param((Budget(4, HOUR),), (), (0, 4, None), id="nothing used"),
        pytest.param((Budget(4, HOUR),), (60.0, 600.0), (2, 2, 3000.0), id="until the oldest drops out"),
        pytest.param((Budget(4, HOUR),), (60.0, 4000.0), (1, 3, 3540.0), id="what is older counts no more"),
        pytest.param((Budget(1, HOUR),), (60.0, 600.0), (2, 0, 3000.0), id="never less than none"),
        pytest.param((Budget(9, HOUR), Budget(3, 2 * HOUR)), (600.0,), (1, 2, 6600.0), id="the tightest"),
        pytest.param((Budget(0, HOUR, scope="Topology"),), (600.0,), None, id="none of a topology's"),
    ],
)
def test_a_policys_status_tells_what_is_left_of_its_budget_and_until_when(
    budgets: tuple[Budget, ...], ages_seconds: tuple[float, ...], told: tuple[int, int, float | None] | None
) -> None:
    moves = tuple(a_move(f"m{age}", started_at=NOW - age) for age in ages_seconds)
    seen = outlook(a_snapshot(a_node("a"), moves=moves), a_policy(moves=MovesPolicy(budgets=budgets)))
    found = policy_status(policy_resource(), seen).budget
    if told is None:
        assert found is None
        return
    assert found is not None
    reset = found.next_reset.timestamp() - NOW if found.next_reset else None
    assert (found.used, found.remaining, reset) == told


def test_a_topologys_status_counts_its_executors() -> None:
    executors = (
        an_executor("exec-1", node="a"),
        an_executor("exec-2", node="b"),
        gated("exec-3"),
        an_executor("exec-4", phase=Phase.ENDED, node="a"),
        an_executor("exec-5", topology="team/other", node="a"),
    )
    nodes: tuple[Node, ...] = (a_node("a"), a_node("b", zone="z2"))
    found = topology_status(topology_resource(), outlook(a_snapshot(*nodes, executors=executors)))
    assert found.executors is not None
    assert (found.executors.text, found.executors.gated) == ("2/3", 1)
    (component,) = found.components
    assert (component.executors, component.running, component.nodes, component.zones) == (3, 2, 2, 2)
    assert {c.type: c.reason for c in found.conditions}["Placed"] == "Waiting"
    assert found.policy == "streaming"


def test_a_component_has_the_scope_of_its_own_topology_while_it_has_executors() -> None:
    seen = outlook(a_snapshot(a_node("a"), executors=(an_executor("exec-1", node="a"),)))
    scopes = (("team/clicks", "idle", "Zone"), ("team/clicks", "ingest", "Rack"), ("team/other", "ingest", "Node"))
    found = topology_status(
        topology_resource("ingest", "idle"), replace(seen, memory=replace(seen.memory, scopes=scopes))
    )
    assert {component.name: component.scope for component in found.components} == {"ingest": "Rack", "idle": ""}


def test_a_topology_whose_queries_may_not_run_says_so_until_they_may() -> None:
    seen = outlook(a_snapshot(a_node("a", cpu=0.1)))
    denied = replace(seen, findings=(Finding("team/clicks", ConditionReason.QUERY_NOT_ALLOWED, "ask for it"),))
    told = topology_status(topology_resource(), denied)
    verdicts = {c.type: (c.status.value, c.reason, c.message) for c in told.conditions}
    assert verdicts["MetricsAvailable"] == ("False", "QueryNotAllowed", "ask for it")
    assert verdicts["Ready"][0] == "True"
    after = topology_status(topology_resource(status=told.to_dict()), seen)
    assert {c.type: c.reason for c in after.conditions}["MetricsAvailable"] == "Available"


@pytest.mark.parametrize(
    ("available", "reason"), [(True, ConditionReason.PARTIAL), (False, ConditionReason.NO_NODE_METRICS)]
)
def test_a_topology_names_no_pods_of_others_whose_metrics_are_not_used(
    available: bool, reason: ConditionReason
) -> None:
    """Every user of its namespace may read it."""
    words = "not used: series of spark-1 come from pod web/secret, which is not its driver"
    health = MetricsHealth(available=available, reason=reason, message=words)
    seen = outlook(a_snapshot(a_node("a", cpu=0.1), metrics=health))
    (own,) = (c for c in topology_status(topology_resource(), seen).conditions if c.type == "MetricsAvailable")
    assert (own.reason, own.message) == (reason, f"see MetricsAvailable of policy {seen.policy.name}")
    (of_pool,) = (c for c in policy_status(policy_resource(), seen).conditions if c.type == "MetricsAvailable")
    assert "web/secret" in of_pool.message


def test_a_topology_whose_external_component_is_not_seen_says_so_until_it_is() -> None:
    seen = outlook(a_snapshot(a_node("a", cpu=0.1)))
    denied = replace(
        seen,
        findings=(Finding("team/clicks", ConditionReason.EXTERNAL_NAMESPACE_NOT_ALLOWED, "ask for it"),),
    )
    told = topology_status(topology_resource(), denied)
    verdicts = {c.type: (c.status.value, c.reason, c.message) for c in told.conditions}
    assert verdicts["ExternalFound"] == ("False", "ExternalNamespaceNotAllowed", "ask for it")
    after = topology_status(topology_resource(status=told.to_dict()), seen)
    assert "ExternalFound" not in {c.type for c in after.conditions}


def test_a_topology_whose_executors_belong_to_another_says_so_until_they_do_not() -> None:
    seen = outlook(a_snapshot(a_node("a", cpu=0.1)))
    overlap = Finding("team/clicks", ConditionReason.SELECTORS_OVERLAP, "narrow the selectors")
    told = topology_status(topology_resource(), replace(seen, findings=(overlap,)))
    verdicts = {c.type: (c.status.value, c.reason, c.message) for c in told.conditions}
    assert verdicts["SelectorsDisjoint"] == ("False", "SelectorsOverlap", "narrow the selectors")
    after = topology_status(topology_resource(status=told.to_dict()), seen)
    assert "SelectorsDisjoint" not in {c.type for c in after.conditions}


def test_a_stalled_topology_keeps_what_was_known_of_it() -> None:
    seen = outlook(a_snapshot(a_node("a"), executors=(an_executor("exec-1", node="a"),)))
    before = topology_status(topology_resource(), seen)
    resource = topology_resource(status=before.to_dict())
    stalled = stalled_status(resource, ConditionReason.SELECTOR_MATCHES_DRIVER, "mend it", NOW)
    assert stalled.placement == before.placement
    verdicts = {c.type: (c.status.value, c.reason) for c in stalled.conditions}
    assert verdicts["Ready"] == ("False", "SelectorMatchesDriver")
    assert verdicts["Stalled"] == ("True", "SelectorMatchesDriver")
    mended = topology_status(topology_resource(status=stalled.to_dict()), seen)
    assert "Stalled" not in {c.type for c in mended.conditions}
    policy = policy_resource({"conditions": [c.to_dict() for c in stalled.conditions if c.type == "Stalled"]})
    assert "Stalled" in {c.type for c in policy.status.conditions}
    assert "Stalled" not in {c.type for c in policy_status(policy, seen).conditions}


def test_a_topology_with_sizing_tells_what_to_change_first() -> None:
    resource = topology_resource("work")
    sizing = {"machine": {"count": 4, "cores": 4}, "stages": [{"component": "work", "latency": "8ms"}]}
    raw = resource.to_dict()
    declared = SparkTopology.parse({**raw, "spec": {**raw["spec"], "sizing": sizing}})
    seen = outlook(a_snapshot(a_node("a")))
    sized = topology_status(declared, seen)
    assert sized.sizing is not None
    assert sized.sizing.spark_conf["spark.executor.instances"] == "4"
    (condition,) = [each for each in sized.conditions if each.type == "Sized"]
    assert (condition.status, condition.reason) == ("True", "Recommended")
    assert condition.message.startswith("Run 4 executors of 4 cores")
    after = topology_status(SparkTopology.parse({**raw, "status": sized.to_dict()}), seen)
    assert after.sizing is None
    assert "Sized" not in [each.type for each in after.conditions]
