"""`python -m benchmarks.source.answers URL gzip|identity`: the answers of Prometheus, received and dropped."""

from __future__ import annotations

import sys
from time import perf_counter

import urllib3

from benchmarks.source.span import QUERY, STEP_SECONDS, Outcome, spans


def main() -> None:
    url, encoding = sys.argv[1:]
    http = urllib3.PoolManager()
    began = perf_counter()
    for start, end in spans():
        fields = {"query": QUERY, "start": str(start), "end": str(end), "step": str(STEP_SECONDS)}
        answer = http.request(
            "GET",
            f"{url}/api/v1/query_range",
            fields=fields,
            headers={"Accept-Encoding": encoding},
            preload_content=False,
        )
        for _ in answer.stream(1 << 20, decode_content=False):
            pass
        answer.release_conn()
    Outcome(0, perf_counter() - began, {}).tell()


if __name__ == "__main__":
    main()
