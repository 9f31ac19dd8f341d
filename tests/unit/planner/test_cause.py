import pytest

from ballast.planner.cause import CONFIRMING_RATIO, cause, pressure_words


@pytest.mark.parametrize(
    ("slowness", "pressure_ratio", "words"),
    [
        (1.6, None, "its tasks take 1.60 times the median"),
        (1.6, 0.34, "its tasks take 1.60 times the median, something waits for CPU on its node 34% of the time, which"),
        (None, 0.34, "something waits for CPU on its node 34% of the time, which confirms the node as cause"),
        (None, None, "by the scores alone: there are no task figures and no pressure figures"),
    ],
)
def test_what_was_measured_is_told(slowness: float | None, pressure_ratio: float | None, words: str) -> None:
    assert cause(slowness=slowness, pressure_ratio=pressure_ratio).startswith(words)


def test_little_waiting_confirms_nothing() -> None:
    assert "which confirms" in pressure_words(CONFIRMING_RATIO)
    assert "does not confirm" in pressure_words(CONFIRMING_RATIO - 0.01)
