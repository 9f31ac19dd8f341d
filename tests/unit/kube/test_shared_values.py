from __future__ import annotations

from functools import partial

from ballast.kube.document import LONGEST_KEPT_BYTES
from ballast.kube.shared_values import LONGEST_KEY_BYTES, MOST_BYTES, SharedValues


def test_an_equal_key_gives_the_same_value() -> None:
    shared: SharedValues[list[int]] = SharedValues()
    assert shared.of(b"a", lambda: [1]) is shared.of(b"a", lambda: [2])
    assert shared.of(b"b", lambda: [2]) == [2]


def test_the_longest_key_that_is_read_of_a_pod_is_shared() -> None:
    shared: SharedValues[list[int]] = SharedValues()
    assert shared.of(b"a" * LONGEST_KEPT_BYTES, lambda: [1]) is shared.of(b"a" * LONGEST_KEPT_BYTES, lambda: [1])


def test_what_is_longer_than_templates_are_is_not_kept() -> None:
    shared: SharedValues[list[int]] = SharedValues()
    longer = b"a" * (LONGEST_KEY_BYTES + 1)
    assert shared.of(longer, lambda: [1]) is not shared.of(longer, lambda: [1])


def test_all_is_forgotten_before_the_keys_take_too_much_memory() -> None:
    shared: SharedValues[int] = SharedValues()
    keys = [
        number.to_bytes(4, "big") * (LONGEST_KEY_BYTES // 4) for number in range(3 * MOST_BYTES // LONGEST_KEY_BYTES)
    ]
    for number, key in enumerate(keys):
        assert shared.of(key, partial(int, number)) == number
        assert sum(map(len, shared._known)) <= MOST_BYTES
    assert shared.of(keys[-1], lambda: -1) == len(keys) - 1
    assert shared.of(keys[0], lambda: -1) == -1
