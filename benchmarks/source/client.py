"""`python -m benchmarks.source.client URL whole|span`: prometheus-api-client and pandas.

`whole` gathers the answers and makes one frame of them; `span` makes a frame of each answer and joins the frames.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

import pandas as pd
from prometheus_api_client import MetricRangeDataFrame, PrometheusConnect

from benchmarks.source.span import MOST_STEPS, QUERY, START, STEP_SECONDS, STEPS, Outcome


def answer(api: PrometheusConnect, first: int) -> list[dict[str, Any]]:
    last = min(first + MOST_STEPS, STEPS) - 1
    start, end = (datetime.fromtimestamp(START + at * STEP_SECONDS, tz=UTC) for at in (first, last))
    found: list[dict[str, Any]] = api.custom_query_range(QUERY, start, end, step=f"{STEP_SECONDS}s")
    return found


def main() -> None:
    url, way = sys.argv[1:]
    api = PrometheusConnect(url=url)
    began = perf_counter()
    firsts = range(0, STEPS, MOST_STEPS)
    if way == "whole":
        frame = MetricRangeDataFrame([series for first in firsts for series in answer(api, first)])
    else:
        frame = pd.concat([MetricRangeDataFrame(answer(api, first)) for first in firsts])
    means = frame.groupby("pod")["value"].mean().to_dict()
    Outcome(len(frame), perf_counter() - began, means).tell()


if __name__ == "__main__":
    main()
