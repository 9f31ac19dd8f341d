"""What a quota remembers, and for how long."""

from __future__ import annotations

from collections import Counter
from itertools import product

from ballast.controller.quota import OF_ALL, Quota, TemplateQuota
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
    kept = (quota._admitted, quota._usage, quota._refused, quota._refusals, quota._freed, quota._crowded_out)
    assert not any(kept)


def test_many_namespaces_together_have_four_times_as_much_as_one_and_each_its_equal_part() -> None:
    """A user with 19 namespaces filled the memory with topologies, 21 MiB of each."""
    most, namespaces = 100, 40
    quota = Quota(kinds.POD, most, "100")
    used: Counter[str] = Counter()
    for namespace, number in product(range(namespaces), range(20)):
        used[f"evil-{namespace}"] += 10 * admitted(quota, f"{namespace}-{number}", f"evil-{namespace}", 10)
    assert max(used.values()) == most
    assert used.total() < 2 * OF_ALL * most
    half_of_an_equal_part = OF_ALL * most // (namespaces + 1) // 2
    assert admitted(quota, "mine", "victim", half_of_an_equal_part)
    assert not admitted(quota, "more", "victim", 10)
    assert "in victim beyond their part of what all namespaces may have (4 times 100)" in str(quota.excesses()[-1])
    assert quota.retriable() == frozenset()
    quota.remove("0-0")
    assert "more" in quota.retriable()


def test_templates_of_many_namespaces_are_bounded_as_well() -> None:
    quota, values = TemplateQuota(100), [[number] for number in range(400)]
    kept = 0
    for number, value in enumerate(values):
        if quota.admits(f"n{number}", value, 20):
            quota.add(f"n{number}", value, 20)
            kept += 20
    assert kept == 100 * OF_ALL
    assert quota.admits("n0", values[0], 20)
