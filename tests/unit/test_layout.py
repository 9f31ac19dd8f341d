"""Where a newcomer finds things: each answer names a module that exists and what it defines there."""

from __future__ import annotations

import ast
import re
from itertools import pairwise
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "operator" / "ballast"
ANSWERS = [
    ("Where is one pass decided?", "planner/plan", "plan"),
    ("Where does a policy's YAML become what decisions read?", "model/from_api", "policy_from"),
    ("Where are the reasons listed?", "model/reason", "Reason"),
    ("Where is it decided which gated executors are released together?", "planner/release", "releases"),
    ("Where is it known how much CPU an executor takes along?", "moves/loads", "Loads"),
    ("Where are the speeds of machine types learned?", "moves/speed", "observed"),
    ("Where is the room of a node computed?", "placement/room", "Room"),
    ("Where are taints and node affinity checked?", "placement/admission", "Admission"),
    ("Where is the scope of a component chosen?", "placement/scope", "next_scopes"),
    ("Where does an executor return to its earlier node?", "placement/stickiness", "returning"),
    ("Where is a zone found when the gate timeout is over?", "placement/fallback", "fallback"),
    ("Where is a shedding strategy registered?", "shedding/strategies", "STRATEGIES"),
    ("Where is the victim chosen?", "shedding/victims_and_destination", "Effect"),
    ("Where does one arbiter accept or refuse a move?", "planner/arbiter", "Arbiter"),
    ("Where is it decided whether an executor may move at all?", "moves/eligibility", "objections"),
    ("Where are budgets of moves checked?", "moves/budget", "pool_objection"),
    ("Where is a move checked again right before its effect?", "moves/revalidation", "revalidate"),
    ("Where is the deadline of an arriving replacement?", "moves/arriving", "_deadline"),
    ("Where is a finished move judged?", "moves/judgment", "verdict"),
    ("Where are stale metrics recognized?", "prometheus/usage", "Reading.aged"),
    ("Where are the PromQL queries?", "prometheus/preset", "Queries"),
    ("Where are watches kept open?", "kube/informer", "Informer"),
    ("Where is the leader elected?", "kube/lease", "Election"),
    ("Where is a gate removed from a pod?", "kube/actions", "release"),
    ("Where do writes wait for each other?", "tenancy/lane", "Lane"),
    ("Where is the state of the cluster kept in memory?", "controller/cluster_state", "ClusterState"),
    ("Where are the limits of one namespace?", "tenancy/door", "EXECUTORS"),
    ("Where is status written?", "controller/reporter", "Reporter"),
    ("Where are the operator's own metrics?", "controller/telemetry", "Telemetry"),
]
BY_NAMESPACE = {
    "api/names",
    "cli/source",
    "controller/actuator",
    "controller/framework",
    "controller/metrics_reader",
    "controller/quarantine",
    "controller/reconciler",
    "controller/reporter",
    "controller/ungated",
    "kube/answer",
    "kube/document",
    "moves/rest",
    "placement/locality",
    "placement/repair",
    "planner/nominations",
    "prometheus/client",
    "prometheus/preset",
    "shedding/avg_shedder_usage",
    "shedding/victims_and_destination",
}
"""Modules outside `tenancy` that still bound or order by namespace. None is to be added: the door, the account and the
lane do that.
"""
TENANTS = re.compile(r"\b(namespace|user|tenant)s?\b", re.IGNORECASE)


def defined(path: Path) -> set[str]:
    """Names at the top of the module, and `Class.method`."""
    found: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)}
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found.add(node.name)
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


@pytest.mark.parametrize(("question", "module", "name"), ANSWERS, ids=[module for _, module, _ in ANSWERS])
def test_the_answer_is_in_the_module(question: str, module: str, name: str) -> None:
    path = PACKAGE / f"{module}.py"
    assert path.exists(), question
    assert name in defined(path), question


def test_no_two_questions_are_the_same() -> None:
    assert len({question for question, _, _ in ANSWERS}) == len(ANSWERS) == 29


def is_by_namespace(path: Path) -> bool:
    """Whether it has a number that is explained by namespaces or users."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return any(
        isinstance(node, ast.Assign) and _has_number(node.value) and TENANTS.search(_said(after)) is not None
        for node, after in pairwise(body)
    )


def _has_number(value: ast.expr) -> bool:
    return any(isinstance(each, ast.Constant) and type(each.value) in (int, float) for each in ast.walk(value))


def _said(node: ast.stmt) -> str:
    """The words below a constant."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return str(node.value.value)
    return ""


def test_no_other_module_outside_tenancy_bounds_or_orders_by_namespace() -> None:
    modules = [path for path in PACKAGE.rglob("*.py") if path.parent.name != "tenancy"]
    found = {str(path.relative_to(PACKAGE).with_suffix("")) for path in modules if is_by_namespace(path)}
    assert found == BY_NAMESPACE, "take modules out of BY_NAMESPACE that need not be in it any more"
