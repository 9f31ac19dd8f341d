import pytest

from tests.testbed.kubelet.addresses import Addresses, OutOfAddressesError, range_around


def test_no_two_pods_have_the_same_address_and_none_the_nodes() -> None:
    pool = Addresses("127.9.1.0/29", reserved=["127.9.1.1"])
    assert [pool.claim() for _ in range(5)] == [f"127.9.1.{last}" for last in range(2, 7)]
    with pytest.raises(OutOfAddressesError, match="podCidr"):
        pool.claim()


def test_an_address_just_returned_is_given_out_last() -> None:
    pool = Addresses("127.9.1.0/29", reserved=[])
    first = pool.claim()
    pool.release(first)
    assert [pool.claim() for _ in range(6)][-1] == first


def test_an_address_from_before_a_restart_stays_taken() -> None:
    pool = Addresses("127.9.1.0/30", reserved=[])
    pool.reclaim("127.9.1.1")
    assert pool.claim() == "127.9.1.2"


def test_pods_live_around_their_node() -> None:
    assert range_around("127.9.1.1") == "127.9.1.0/24"
