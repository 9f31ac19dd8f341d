"""What a quota remembers, and for how long."""

from __future__ import annotations

from ballast.controller.quota import Quota
from ballast.kube import kinds


def admitted(quota: Quota, uid: str, namespace: str = "a", size: int = 1) -> bool:
    return quota.admit(uid, namespace=namespace, name=uid, size=size)


def test_what_was_refused_is_tried_again_once_its_namespace_uses_less() -> None:
    quota = Quota(kinds.POD, 2, "2")
    assert [admitted(quota, uid) for uid in "xyz"] == [True, True, False]
    assert quota.retriable() == frozenset()
    quota.remove("x")
    assert quota.retriable() == {"z"}
    assert quota.retriable() == frozenset()
    assert admitted(quota, "z")
    assert quota.excesses() == ()


def test_namespaces_whose_objects_come_and_go_leave_nothing_behind() -> None:
    quota = Quota(kinds.POD, 1, "1")
    for number in range(100):
        one, two = f"one-{number}", f"two-{number}"
        assert admitted(quota, one, f"n{number}")
        assert not admitted(quota, two, f"n{number}")
        quota.remove(one)
        quota.remove(two)
    kept = (quota._admitted, quota._used, quota._refused, quota._refusals, quota._freed)
    assert not any(kept)
