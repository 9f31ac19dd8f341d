"""The chart, installed by the real helm on the real API server. There is no kubelet: its pods stay Pending."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ballast.api.crd import KINDS
from ballast.kube.kinds import EXECUTOR_MOVE, GATE_SWITCH, POD
from ballast.kube.names import GATE
from tests.cluster.chart.caller import Answer, Caller, account, administrator, user
from tests.cluster.chart.objects import eviction, executor, gates_of, move
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until

JSON = dict[str, Any]

CHART = Path(__file__).parents[3] / "charts" / "ballast"
RELEASE = "ballast"
NAMESPACE = "ballast-system"
PROBES = "ballast-probes"
"""A namespace that opted in, with one pod that did not."""
PROBE = "not-gated"
NOSY = "nosy"
"""A user who may create moves there, and evict nobody."""


@dataclass(frozen=True, slots=True)
class Installation:
    testbed: Testbed
    admin: Caller
    nosy: Caller

    def install(self, *arguments: str, gate: bool = True) -> None:
        """Install it, and return when every one of its admission policies is at work. `gate`: whether one adds it."""
        self._helm("install", *arguments)
        self.await_definitions()
        if gate:
            self.await_policies()
        else:
            self.await_fences()

    def upgrade(self, *arguments: str) -> None:
        """To the chart's defaults, except for `arguments`."""
        self._helm("upgrade", "--reset-values", *arguments)

    def rollback(self) -> None:
        """To the release before the last one."""
        self.testbed.helm("rollback", RELEASE, f"--namespace={NAMESPACE}", "--force-conflicts")

    def _helm(self, command: str, *arguments: str) -> None:
        # Other tests of the session apply the definitions by hand, under another field manager.
        forced = ("--force-conflicts", *arguments)
        self.testbed.helm(command, RELEASE, str(CHART), f"--namespace={NAMESPACE}", *forced)

    def uninstall(self) -> None:
        """Without the hook: its Job would need a kubelet."""
        self.testbed.helm("uninstall", RELEASE, f"--namespace={NAMESPACE}", "--no-hooks", "--wait")

    @contextmanager
    def operator(self) -> Iterator[Caller]:
        """The operator itself, as far as the API server can tell."""
        with account(self.testbed, NAMESPACE, RELEASE) as caller:
            yield caller

    def switch(self, *, gating: bool, everywhere: bool = False, namespaces: tuple[str, ...] = ()) -> None:
        """Write the gate switch, as the leader does."""
        spec = {"gating": gating, "allNamespaces": everywhere, "namespaces": list(namespaces)}
        body = {"apiVersion": GATE_SWITCH.api_version, "kind": GATE_SWITCH.kind, "metadata": {"name": RELEASE}}
        answer = self.admin.create(GATE_SWITCH, {**body, "spec": spec})
        if answer.code == 409:
            answer = self.admin.patch(GATE_SWITCH, RELEASE, {"spec": spec})
        assert answer.ok, answer

    def remove_switch(self) -> None:
        """Which means off; other tests make switches of their own."""
        assert self.admin.delete(GATE_SWITCH, RELEASE).code in (200, 404)
        self.await_gating(executor(), PROBES, gated=False)

    def gates(self, pod: JSON, namespace: str) -> list[str]:
        """The gates that this pod would have if it were created now."""
        answer = self.admin.create(POD, pod, namespace=namespace, dry=True)
        assert answer.ok, answer
        return gates_of(answer.body)

    def await_gating(self, pod: JSON, namespace: str, *, gated: bool = True) -> None:
        wait_until(lambda: (GATE in self.gates(pod, namespace)) == gated, what=f"gated: {gated}")

    def await_definitions(self) -> None:
        self.testbed.await_definitions(*(kind.crd_name for kind in KINDS))

    def await_policies(self) -> None:
        """Return when both ways into the gate and all fences work; leaves no switch behind."""
        self.switch(gating=True, everywhere=True)
        self.await_gating(executor(), PROBES)
        self.await_gating(executor(labels={"ballast.dev/topology": "probes"}), "default")
        self.await_fences()
        self.remove_switch()

    def await_fences(self) -> None:
        """Ask for what each fence forbids, until it says so. Nothing is changed by it."""
        with self.operator() as ours:
            label = {"metadata": {"labels": {"probe": "true"}}}
            evict = eviction(PROBE, PROBES)
            tied = move("p", pod=PROBE)
            tied["metadata"]["finalizers"] = ["example.com/forever"]
            foreign = {"apiVersion": GATE_SWITCH.api_version, "kind": GATE_SWITCH.kind, "metadata": {"name": "foreign"}}
            asks: dict[str, Callable[[], Answer]] = {
                "patch": lambda: ours.patch(POD, PROBE, label, namespace=PROBES, dry=True),
                "delete": lambda: ours.delete(POD, PROBE, namespace=PROBES, dry=True),
                "evict": lambda: ours.act(POD, PROBE, subresource="eviction", body=evict, namespace=PROBES, dry=True),
                "own": lambda: ours.create(EXECUTOR_MOVE, tied, namespace=PROBES, dry=True),
                "switch": lambda: ours.create(GATE_SWITCH, foreign, dry=True),
                "move": lambda: self.nosy.create(EXECUTOR_MOVE, move("p", pod=PROBE), namespace=PROBES, dry=True),
            }
            for policy, ask in asks.items():
                wait_until(partial(_refused, ask, f"{RELEASE}-{policy}"), what=f"{policy} is fenced")


def _refused(ask: Callable[[], Answer], policy: str) -> bool:
    return ask().refused_by(policy)


@contextmanager
def installation(testbed: Testbed, *, gate: bool = True) -> Iterator[Installation]:
    """The chart installed with its defaults, in a namespace that lets only restricted pods in.

    `gate`: whether with the admission policy that adds the gate, which Kubernetes 1.36 is the first to have.
    """
    restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
    testbed.create_namespace(NAMESPACE, labels=restricted)
    testbed.create_namespace(PROBES, labels={"ballast.dev/gate": "enabled"})
    # Definitions that other tests applied by hand are not helm's to change.
    testbed.kubectl("delete", "crd", "--ignore-not-found", *(kind.crd_name for kind in KINDS))
    with ExitStack() as stack:
        admin = stack.enter_context(administrator(testbed))
        installed = Installation(testbed, admin, stack.enter_context(user(testbed, NOSY)))
        assert admin.create(POD, executor(PROBE, role=None, gates=["example.com/forever"]), namespace=PROBES).ok
        grant(testbed, PROBES, NOSY, verbs=["create", "patch"], group="ballast.dev", resources=["executormoves"])
        installed.install(*(() if gate else ("--set=gate.install=false",)), gate=gate)
        yield installed


def grant(
    testbed: Testbed,
    namespace: str,
    name: str,
    *,
    verbs: Sequence[str],
    group: str,
    resources: Sequence[str],
    names: Sequence[str] = (),
) -> None:
    """Let the user `name` do this in `namespace`, to all or to those with `names`; further grants add to it."""
    rbac = "rbac.authorization.k8s.io"
    metadata = {"name": f"{name}-{'-'.join(resources).replace('/', '.')}", "namespace": namespace}
    rule = {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}
    testbed.apply(
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "Role",
            "metadata": metadata,
            "rules": [{**rule, "resourceNames": list(names)} if names else rule],
        },
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": metadata["name"]},
            "subjects": [{"kind": "User", "name": name, "apiGroup": rbac}],
        },
    )
