from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from examples.clickstream.job import numbered


@dataclass
class State:
    """As `applyInPandasWithState` hands it to its function."""

    get: tuple[int] | None = None

    @property
    def exists(self) -> bool:
        return self.get is not None

    def update(self, value: tuple[int]) -> None:
        self.get = value


def test_a_user_s_clicks_are_counted_over_frames_and_micro_batches() -> None:
    state = State()
    frames = [pd.DataFrame({"click_id": [7, 8]}), pd.DataFrame({"click_id": [9]})]
    assert [frame["nth"].tolist() for frame in numbered((1,), frames, state)] == [[1, 2], [3]]
    (next_batch,) = numbered((1,), [pd.DataFrame({"click_id": [10]})], state)
    assert next_batch["nth"].tolist() == [4]
