from __future__ import annotations

from tests.reference.samza.standby import kind, must_be_apart, with_standbys

HYPHENS = {"a-1": ["x-0", "x-1"], "a-2": ["x-2"]}


def test_every_copy_of_a_process_keeps_apart_from_it_and_from_the_others() -> None:
    assert must_be_apart(with_standbys({"0": ["x"], "1": ["y"]}, 3)) == {
        "0": ["0-0", "0-1"],
        "1": ["1-0", "1-1"],
        "0-0": ["0", "0-1"],
        "0-1": ["0", "0-0"],
        "1-0": ["1", "1-1"],
        "1-1": ["1", "1-0"],
    }


def test_one_replica_means_no_copy() -> None:
    assert list(with_standbys({"0": ["x"]}, 1)) == ["0"]


def test_hyphens_in_names_mean_nothing() -> None:
    processes = with_standbys(HYPHENS, 2)
    assert must_be_apart(processes) == {"a-1": ["a-1-0"], "a-2": ["a-2-0"], "a-1-0": ["a-1"], "a-2-0": ["a-2"]}
    assert kind(processes["a-1"]) == (False, "a-1")
    assert kind(processes["a-1-0"]) == (True, "a-1")


def test_reading_names_as_samza_does_is_there_to_compare() -> None:
    processes = with_standbys(HYPHENS, 2)
    assert must_be_apart(processes, by_names=True) == {"a-1": [], "a-2": [], "a-1-0": ["a-2-0"], "a-2-0": ["a-1-0"]}
    assert kind(processes["a-1"], by_names=True) == (True, "a")
