from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.testbed.kubelet.logs import CHUNK_BYTES, LogQuery, read, tail_offset


async def over() -> bool:
    return True


async def everything(path: Path, query: LogQuery) -> bytes:
    return b"".join([chunk async for chunk in read(path, query, over)])


@given(text=st.lists(st.sampled_from(["a", "bb", "\n"]), max_size=40).map("".join), lines=st.integers(0, 12))
def test_the_tail_is_the_last_lines(tmp_path_factory: pytest.TempPathFactory, text: str, lines: int) -> None:
    path = tmp_path_factory.mktemp("log") / "0.log"
    path.write_text(text)
    kept = text.splitlines(keepends=True)
    assert path.read_text()[tail_offset(path, lines) :] == "".join(kept[len(kept) - min(lines, len(kept)) :])


def test_the_tail_may_span_chunks(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_text("first\n" + "x" * (2 * CHUNK_BYTES) + "\nlast\n")
    assert tail_offset(path, 2) == len("first\n")


async def test_no_more_bytes_are_sent_than_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_text("0123456789")
    assert await everything(path, LogQuery(limit_bytes=4)) == b"0123"


async def test_following_goes_on_until_the_container_has_ended_and_then_to_the_end(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_text("one\n")
    states = iter([False, True])

    async def ended() -> bool:
        state = next(states)
        if state:
            with path.open("a") as stream:
                stream.write("two\n")
        return state

    found = [chunk async for chunk in read(path, LogQuery(follow=True), ended)]
    assert found == [b"one\n", b"two\n"]
