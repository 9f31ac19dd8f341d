"""`ballast release`: what is said of those that could not be released."""

from __future__ import annotations

from ballast.cli.release import held
from ballast.kube.actions import Changed, Refused, Released, Vanished
from ballast.kube.errors import KubeError


def test_those_that_are_gone_need_no_release() -> None:
    assert not held([Released(), Vanished(), Released(already=True)])


def test_those_still_held_are_counted_by_why() -> None:
    refused = Refused("a webhook says no", KubeError("patch pods", "a webhook says no"))
    assert held([refused, Released(), Changed("another gate"), refused]) == {"a webhook says no": 2, "another gate": 1}
