"""`python -m benchmarks.source.client URL CORES whole|span|plain`: prometheus-api-client and pandas.

`whole` gathers the answers and makes one frame of them, as the client's documentation does; `span` makes a frame of
each answer and joins the frames; `plain` does so too and asks for answers that are not compressed.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

import pandas as pd
from prometheus_api_client import MetricRangeDataFrame, PrometheusConnect

from benchmarks.source.span import QUERY, STEP_SECONDS, Outcome, keep_to, spans


def answer(api: PrometheusConnect, first: int, last: int) -> list[dict[str, Any]]:
    start, end = (datetime.fromtimestamp(second, tz=UTC) for second in (first, last))
    found: list[dict[str, Any]] = api.custom_query_range(QUERY, start, end, step=f"{STEP_SECONDS}s")
    return found


def main() -> None:
    url, cores, way = sys.argv[1:]
    keep_to(int(cores))
    api = PrometheusConnect(url=url, headers={"Accept-Encoding": "identity"} if way == "plain" else None)
    began = perf_counter()
    if way == "whole":
        frame = MetricRangeDataFrame([series for span in spans() for series in answer(api, *span)])
    else:
        frame = pd.concat([MetricRangeDataFrame(answer(api, *span)) for span in spans()])
    means = frame.groupby("pod")["value"].mean().to_dict()
    Outcome(len(frame), perf_counter() - began, means).tell()


if __name__ == "__main__":
    main()
