from ballast.planner.slowness import evidence
from tests.builders import an_executor


def test_slowness_is_relative_to_the_applications_median() -> None:
    executors = [an_executor(f"e-{i}", task_seconds=s, task_bytes=100.0) for i, s in enumerate((1.0, 1.0, 3.0))]
    found = evidence(executors)
    assert found["uid-e-2"].slowness == 3.0
    assert found["uid-e-2"].skew == 1.0


def test_other_applications_do_not_count() -> None:
    one = [an_executor("a-1", task_seconds=1.0), an_executor("a-2", task_seconds=1.0)]
    other = [an_executor(f"b-{i}", task_seconds=9.0, application="spark-other") for i in range(3)]
    assert evidence(one + other)["uid-b-0"].slowness == 1.0


def test_one_measured_executor_alone_is_no_evidence() -> None:
    assert evidence([an_executor("e-1", task_seconds=1.0), an_executor("e-2")]) == {}
