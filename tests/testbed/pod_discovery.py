"""Tells Prometheus which pods want to be scraped, as its own Kubernetes discovery would: Debian's lacks it.

Running pods with the annotation `prometheus.io/scrape: "true"` are scraped at `prometheus.io/port` and
`prometheus.io/path`. A Spark driver shows its executors' figures at a second path, which annotations can't name.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import requests

from tests.testbed.prometheus import PrometheusFolder, Target

PODS_JOB = "pods"
EXECUTORS_JOB = "spark-executors"
EXECUTORS_PATH = "/metrics/executors/prometheus"
WATCH_SECONDS = 60
RETRY_SECONDS = 1.0

Json = dict[str, Any]


def targets_of(pods: Iterable[Mapping[str, Any]]) -> dict[str, list[Target]]:
    """The targets of each job, for pods as the API server has them."""
    wanted = [pod for pod in pods if _wants_scraping(pod)]
    drivers = [pod for pod in wanted if pod["metadata"].get("labels", {}).get("spark-role") == "driver"]
    return {
        PODS_JOB: [_target(pod, _annotation(pod, "path") or "/metrics") for pod in wanted],
        EXECUTORS_JOB: [_target(pod, EXECUTORS_PATH) for pod in drivers],
    }


def _wants_scraping(pod: Mapping[str, Any]) -> bool:
    status = pod.get("status", {})
    running = status.get("phase") == "Running" and "podIP" in status
    return running and _annotation(pod, "scrape") == "true" and bool(_annotation(pod, "port"))


def _annotation(pod: Mapping[str, Any], name: str) -> str:
    return str(pod["metadata"].get("annotations", {}).get(f"prometheus.io/{name}", ""))


def _target(pod: Mapping[str, Any], path: str) -> Target:
    metadata = pod["metadata"]
    address = f"{pod['status']['podIP']}:{_annotation(pod, 'port')}"
    return Target(address, {"namespace": metadata["namespace"], "pod": metadata["name"]}, path)


class PodFollower:
    """Keeps the target files in step with the pods of one API server."""

    def __init__(self, session: requests.Session, *, url: str, folder: PrometheusFolder) -> None:
        self._session = session
        self._url = f"{url}/api/v1/pods"
        self._folder = folder
        self._pods: dict[str, Json] = {}
        self._written: dict[str, list[Target]] = {}

    def follow(self) -> None:
        """List, then watch until the server ends the stream."""
        listed = self._session.get(self._url, timeout=WATCH_SECONDS).json()
        self._pods = {pod["metadata"]["uid"]: pod for pod in listed["items"] if _annotation(pod, "scrape")}
        self._write()
        for event in self._watch(listed["metadata"]["resourceVersion"]):
            if event["type"] == "ERROR":
                return
            self._take(event["type"], event["object"])
            self._write()

    def _watch(self, version: str) -> Iterator[Json]:
        query = {"watch": "true", "resourceVersion": version, "timeoutSeconds": str(WATCH_SECONDS)}
        answer = self._session.get(self._url, params=query, stream=True, timeout=2 * WATCH_SECONDS)
        yield from (json.loads(line) for line in answer.iter_lines(chunk_size=None))

    def _take(self, kind: str, pod: Json) -> None:
        uid = pod["metadata"]["uid"]
        if kind == "DELETED":
            self._pods.pop(uid, None)
        elif _annotation(pod, "scrape"):
            self._pods[uid] = pod

    def _write(self) -> None:
        targets = targets_of(self._pods.values())
        for job, found in targets.items():
            if self._written.get(job) != found:
                self._folder.set_targets(job, found)
        self._written = targets


def main(arguments: Sequence[str] | None = None) -> None:
    """Follow until killed; a lost connection is tried again."""
    parser = argparse.ArgumentParser()
    for name in ("url", "ca", "certificate", "key", "folder"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args(arguments)
    with requests.Session() as session:
        session.trust_env = False
        session.verify = options.ca
        session.cert = (options.certificate, options.key)
        follower = PodFollower(session, url=options.url, folder=PrometheusFolder(Path(options.folder)))
        while True:
            try:
                follower.follow()
            except (requests.RequestException, KeyError, ValueError) as error:
                print(f"listing pods failed: {error!r}", file=sys.stderr, flush=True)
                time.sleep(RETRY_SECONDS)


if __name__ == "__main__":
    main()
