"""Two days of a cluster of three nodes in two pools, as kube-prometheus-stack and the operator would have left them."""

from __future__ import annotations

from collections.abc import Iterator

START = 1_767_225_600
"""2026-01-01T00:00:00Z."""
END = START + 2 * 86_400
EVERY_SECONDS = 240
NODES = {"10.0.0.1:9100": "n1", "10.0.0.2:9100": "n2", "10.0.0.3:9100": "n3"}
POLICIES = {"n1": "streaming", "n2": "streaming", "n3": "batch"}
PLACED = [("clicks-exec-1", "n1"), ("clicks-exec-2", "n2")]
"""As the labels of cAdvisor's series tell, which have no word of others."""
PLACED_BY_OPERATOR = [*PLACED, ("clicks-exec-4", "n2")]
"""As the operator tells, which was installed at noon of the first day."""
PLACED_BY_API = [*PLACED, ("clicks-exec-3", "n2")]
"""As kube-state-metrics tells, which came on the second day: where it is, nobody else is believed."""
SYSTEM = "ballast-system"
REFUSALS = ["Cooldown", "NoGain"]
KINDS = ["move", "placement"]
PHASES = ["Failed", "Succeeded"]
NODE_CPU = (
    'sum by (node, instance) (rate(node_cpu_seconds_total{job="node-exporter",mode!~"idle|iowait|steal"}[1800s]))'
)
AGAIN_AT = START + 2_700
"""Well before the next half hour: a series that has ended is still told of for five minutes."""
_LATE_UNTIL = START + 86_400 - 3_600
"""Late data ends well before midnight, so that no rate of the next day sees it."""


def openmetrics(*, late: bool = False, again: bool = False) -> Iterator[str]:
    """With `late`, also the first day's figures of an executor that were not there before.

    With `again`, also an executor on n1 and, by the name it had, another on n2 as soon as that one is gone.
    """
    for second in range(START - 3_600, END, EVERY_SECONDS):
        for address, node in NODES.items():
            yield from _node(address, node, second)
        for pod, node in PLACED:
            yield from _executor(pod, node, second)
        for number, (pod, node) in enumerate(PLACED_BY_OPERATOR if second >= START + 43_200 else ()):
            # A scrape that honors labels, or sets no namespace, and one that renames them.
            renamed = f'namespace="{SYSTEM}",pod="ballast-0",exported_namespace="analytics",exported_pod="{pod}"'
            own = renamed if number else f'namespace="analytics",pod="{pod}"'
            labels = f'policy="{POLICIES[node]}",{own},node="{node}",application="spark-0"'
            yield f"ballast_executor_info{{{labels}}} 1 {second}\n"
        for pod, node in PLACED_BY_API if second >= START + 86_400 else ():
            yield from _pod(pod, node, second)
        if late and START <= second < _LATE_UNTIL:
            yield from _executor("clicks-exec-9", "n1", second)
        if again:
            yield from _executor("clicks-exec-7", "n1" if second < AGAIN_AT else "n2", second)
        yield from _operator(second)
        yield from _stranger(second)
    yield "# EOF\n"


def _node(address: str, node: str, second: int) -> Iterator[str]:
    exporter = f'job="node-exporter",instance="{address}"'
    number = int(node[1:])
    for mode, share in (("user", number / 4), ("idle", 1.0)):
        seconds = share * (second - START + 3_600)
        yield f'node_cpu_seconds_total{{{exporter},cpu="0",mode="{mode}"}} {seconds} {second}\n'
    yield f"node_memory_MemTotal_bytes{{{exporter}}} 16000000000 {second}\n"
    yield f"node_memory_MemAvailable_bytes{{{exporter}}} {number * 10**9} {second}\n"
    yield f'up{{job="kubelet",node="{node}",instance="{address.removesuffix(":9100")}:10250"}} 1 {second}\n'
    api = f'job="kube-state-metrics",namespace="monitoring",node="{node}"'
    yield f'kube_node_status_allocatable{{{api},resource="cpu"}} {4 * number} {second}\n'
    yield f'kube_node_status_allocatable{{{api},resource="memory"}} {number * 10**10} {second}\n'
    yield f"kube_node_spec_unschedulable{{{api}}} {int(number == 1)} {second}\n"
    labels = f'policy="{POLICIES[node]}",node="{node}"'
    yield f"ballast_node_score_percent{{{labels}}} {20 * number} {second}\n"
    # Whatever is scraped can export such a series: it must not name a folder.
    yield f'ballast_node_score_percent{{policy="../../outside",node="{node}"}} 1 {second}\n'
    for threshold, hits in (("high", 0), ("low", number)):
        yield f'ballast_node_hits{{{labels},threshold="{threshold}"}} {hits} {second}\n'


def _executor(pod: str, node: str, second: int) -> Iterator[str]:
    address = f"10.0.0.{node[1:]}:10250"
    labels = (
        f'job="kubelet",metrics_path="/metrics/cadvisor",namespace="analytics",pod="{pod}",container="executor"'
        f',node="{node}",instance="{address}"'
    )
    yield f"container_cpu_usage_seconds_total{{{labels}}} {2 * (second - START + 3_600)} {second}\n"
    yield f"container_memory_working_set_bytes{{{labels}}} 4000000000 {second}\n"


def _pod(pod: str, node: str, second: int) -> Iterator[str]:
    labels = f'job="kube-state-metrics",namespace="analytics",pod="{pod}"'
    yield f'kube_pod_info{{{labels},node="{node}"}} 1 {second}\n'
    yield f'kube_pod_labels{{{labels},label_spark_role="executor",label_spark_app_selector="spark-1"}} 1 {second}\n'
    for resource, asked in (("cpu", 2), ("memory", 5 * 10**9)):
        requests = f'{labels},container="executor",resource="{resource}"'
        yield f"kube_pod_container_resource_requests{{{requests}}} {asked} {second}\n"


def _operator(second: int) -> Iterator[str]:
    for policy in sorted(set(POLICIES.values())):
        yield f'ballast_pool_gap_points{{policy="{policy}",namespace="{SYSTEM}",pod="ballast-0"}} 20 {second}\n'
        yield f'ballast_metrics_timestamp_seconds{{policy="{policy}"}} {second - 5} {second}\n'
        for count, reason in enumerate(REFUSALS):
            yield f'ballast_refusals_total{{policy="{policy}",reason="{reason}"}} {count} {second}\n'
        for metric, label, words in (("decisions", "kind", KINDS), ("moves", "phase", PHASES)):
            for count, word in enumerate(words):
                total = count + (second - START) // 86_400
                yield f'ballast_{metric}_total{{policy="{policy}",{label}="{word}"}} {total} {second}\n'
        for gain, points in (("predicted", 12.5), ("measured", 11)):
            yield f'ballast_move_{gain}_gain_points{{policy="{policy}"}} {points} {second}\n'


def _stranger(second: int) -> Iterator[str]:
    """What a pod of a user exports by the operator's names, as a stock Prometheus labels it."""
    scraped = 'policy="streaming",namespace="tenant",pod="false"'
    yield f"ballast_pool_gap_points{{{scraped}}} 99 {second}\n"
    yield f'ballast_node_score_percent{{{scraped},node="n1"}} 99 {second}\n'
    yield f'ballast_refusals_total{{{scraped},reason="NoGain"}} 99 {second}\n'
    own = 'job="tenant",namespace="tenant",pod="own-exec-1"'
    yield f'kube_node_status_allocatable{{{own},node="n1",resource="cpu"}} 9000 {second}\n'
    yield f'kube_node_spec_unschedulable{{{own},node="n2"}} 1 {second}\n'
    for number in range(1, 6):
        yield f'kube_pod_info{{{own},node="n{number}"}} 1 {second}\n'
    false = 'exported_namespace="analytics",exported_pod="clicks-exec-5"'
    yield f'ballast_executor_info{{{scraped},{false},node="n1",application="spark-9"}} 1 {second}\n'


def hostile() -> Iterator[str]:
    """The cluster, with what pods of a user export of a node, of its address, and of their own executor.

    Their scrapes are labeled as those of node-exporter and kubelet: a PodMonitor names the label that tells the job.
    """
    lines = list(openmetrics())
    yield from lines[:-1]
    for second in range(START - 3_600, END, EVERY_SECONDS):
        scraped = 'namespace="tenant",pod="own",instance="10.9.9.9:80",node="n1"'
        for mode in ("user", "idle"):
            seconds = 100 * (second - START + 3_600)
            yield f'node_cpu_seconds_total{{job="node-exporter",{scraped},cpu="0",mode="{mode}"}} {seconds} {second}\n'
        yield f'node_memory_MemTotal_bytes{{job="node-exporter",{scraped}}} 90000000000 {second}\n'
        yield f'node_memory_MemAvailable_bytes{{job="node-exporter",{scraped}}} 1 {second}\n'
        yield f'up{{job="kubelet",{scraped}}} 1 {second}\n'
        own = (
            'job="kubelet",metrics_path="/metrics/cadvisor",namespace="analytics",pod="clicks-exec-1",container="x"'
            ',instance="10.9.9.8:80"'
        )
        yield f"container_cpu_usage_seconds_total{{{own}}} {1_000 * (second - START + 3_600)} {second}\n"
        yield f"container_memory_working_set_bytes{{{own}}} 7000000000000 {second}\n"
    yield lines[-1]
