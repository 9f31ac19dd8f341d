import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.testbed.kubelet.cgroups import CpuUse, MemoryUse
from tests.testbed.kubelet.exporter import (
    Capacity,
    Idling,
    Load,
    Split,
    cpu_samples,
    memory_samples,
    pressure_samples,
    processors,
)

SHARES = st.floats(0.0, 1.0)


@given(cores=st.floats(0.05, 16), steps=st.lists(st.tuples(st.floats(0.1, 10), SHARES), min_size=1))
def test_all_modes_together_grow_by_the_nodes_cores(cores: float, steps: list[tuple[float, float]]) -> None:
    now = used = 0.0
    idling = Idling(now, used)
    for elapsed, share in steps:
        now, used = now + elapsed, used + elapsed * cores * share
        idling = idling.after(now, used, cores=cores)
    cpus = processors(Split(used / 2, used / 2), cores=cores, idle_seconds=idling.idle_seconds)
    total = sum(cpu.user + cpu.system + cpu.idle for cpu in cpus)
    assert total == pytest.approx(cores * now)


def test_a_used_up_quota_leaves_no_idle_time() -> None:
    idling = Idling(0.0, 0.0).after(10.0, 5.0, cores=0.5)
    assert idling.idle_seconds == 0.0


def test_what_runs_ahead_of_the_quota_is_taken_back() -> None:
    ahead = Idling(0.0, 0.0).after(1.0, 0.55, cores=0.5)
    assert ahead.after(2.0, 0.55, cores=0.5).idle_seconds == pytest.approx(0.45)


def test_a_node_without_a_quota_is_idle_again_at_once_after_using_more_than_it_has() -> None:
    overused = Idling(0.0, 0.0).after(100.0, 150.0, cores=1.0)
    assert overused.after(110.0, 150.0, cores=1.0).idle_seconds == pytest.approx(9.5)


TICKS = st.lists(st.tuples(st.floats(0, 10), st.floats(0, 10), st.floats(0.5, 1.5)), min_size=1)


@given(TICKS)
@example([(0.0, 1.2e-294, 1.0), (5.0, 0.0, 1.0)])
def test_neither_mode_ever_falls_and_both_add_up_to_what_was_used(ticks: list[tuple[float, float, float]]) -> None:
    split, user, system, used = Split(), 0.0, 0.0, 0.0
    for user_ticks, system_ticks, error in ticks:
        user, system = user + user_ticks, system + system_ticks
        used += (user_ticks + system_ticks) * error
        before, split = split, split.after(CpuUse(used, user, system))
        assert split.user_seconds >= before.user_seconds
        assert split.system_seconds >= before.system_seconds
        assert split.user_seconds + split.system_seconds == pytest.approx(used)


@pytest.mark.parametrize(("cores", "shares"), [(0.5, [1.0]), (1.0, [1.0]), (1.5, [2 / 3, 1 / 3]), (2.0, [0.5, 0.5])])
def test_a_node_has_a_cpu_for_each_core_begun(cores: float, shares: list[float]) -> None:
    cpus = processors(Split(0.75, 0.25), cores=cores, idle_seconds=2.0)
    assert [cpu.idle / 2.0 for cpu in cpus] == pytest.approx(shares)
    assert sum(cpu.user for cpu in cpus) == pytest.approx(0.75)


def test_every_mode_of_node_exporter_is_there() -> None:
    samples = list(cpu_samples(processors(Split(1.0, 0.0), cores=1.0, idle_seconds=3.0)))
    assert {s.labels["mode"]: s.value for s in samples} == {
        **dict.fromkeys(("iowait", "irq", "nice", "softirq", "steal", "system"), 0.0),
        "idle": 3.0,
        "user": 1.0,
    }


def test_available_memory_is_what_the_working_set_leaves() -> None:
    memory = MemoryUse(usage_bytes=600, working_set_bytes=400, cache_bytes=200)
    values = {s.name: s.value for s in memory_samples(Capacity("n", 1.0, 1000), memory)}
    assert values["node_memory_MemTotal_bytes"] == 1000
    assert values["node_memory_MemAvailable_bytes"] == 600


def test_pressure_that_the_kernel_does_not_count_is_left_out() -> None:
    samples = pressure_samples({("cpu", "some"): 1.5, ("io", "full"): None})
    assert [(s.name, s.value) for s in samples] == [("node_pressure_cpu_waiting_seconds_total", 1.5)]


def test_the_load_averages_approach_the_demand_at_their_own_pace() -> None:
    load = Load(0.0, 0.0)
    for minute in range(1, 6):
        load = load.after(60.0 * minute, 120.0 * minute)
    one, five, fifteen = load.averages
    assert 1.9 < one < 2.0
    assert fifteen < five < one
