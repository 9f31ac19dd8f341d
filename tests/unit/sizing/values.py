"""Batches, tasks and logs for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ballast.sizing.event_log import EventLog, ExecutorSpan, StageRun, Task
from ballast.sizing.progress import Batch, Progress


def task(stage: int = 0, start: float = 0.0, seconds: float = 1.0, **fields: float) -> Task:
    """Its run time is its whole time, and it computes for all of it, unless told otherwise."""
    values = {
        "run_seconds": seconds,
        "cpu_seconds": fields.get("run_seconds", seconds),
        "gc_seconds": 0.0,
        "input_records": 0.0,
        "input_bytes": 0.0,
        "shuffle_read_bytes": 0.0,
        "shuffle_write_bytes": 0.0,
        "fetch_wait_seconds": 0.0,
        "spilled_bytes": 0.0,
        **fields,
    }
    return Task(stage=stage, executor="1", start_seconds=start, seconds=seconds, **values)


def stage(number: int, *tasks: Task, name: str = "", parents: tuple[int, ...] = ()) -> StageRun:
    return StageRun(number, name or f"stage {number}", parents, tasks)


def log(
    *stages: StageRun,
    cores: Mapping[str, int] | None = None,
    seconds: float | None = None,
    python: bool = False,
    settings: Mapping[str, str] | None = None,
    failed_tasks: int = 0,
) -> EventLog:
    return EventLog(
        application="clicks",
        start_seconds=0.0,
        end_seconds=max(each.end_seconds for each in stages) if seconds is None else seconds,
        settings=settings or {},
        java=17,
        executors=spans(cores or {"1": 2}),
        registered=len(cores or {"1": 2}),
        stages=stages,
        python=python,
        failed_tasks=failed_tasks,
    )


def spans(cores: Mapping[str, int]) -> tuple[ExecutorSpan, ...]:
    """Executors that were there throughout."""
    return tuple(ExecutorSpan(name, count, added_seconds=0.0) for name, count in cores.items())


def progress(
    pairs: Sequence[tuple[float, float]],
    *,
    bookkeeping_ratio: float = 0.1,
    arriving: float | None = None,
    behind: float | None = None,
) -> Progress:
    """Of (rows, seconds)."""
    return Progress(
        "clicks",
        tuple(
            Batch(
                number=number,
                rows=rows,
                seconds=seconds,
                bookkeeping_seconds=bookkeeping_ratio * seconds,
                arriving_per_second=arriving,
                behind_rows=behind,
            )
            for number, (rows, seconds) in enumerate(pairs)
        ),
    )


def sharp(*, count: int = 60) -> list[tuple[float, float]]:
    """Batches that grow sharply from 3000 rows on."""
    sizes = [100.0 * 80.0 ** (step / (count - 1)) for step in range(count)]
    return [(rows, 0.3 + 5e-5 * rows + 1e-3 * max(rows - 3000.0, 0.0)) for rows in sizes]
