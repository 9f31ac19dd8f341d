"""Alerts and dashboards of the chart: they ask for metrics that exist, and each alert fires when it should."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from ballast.model import FAULTS, Cause
from tests.charts.dashboards import DASHBOARDS, FAULTY, FOLDER
from tests.charts.rendering import CHART, JSON, Renderer
from tests.charts.schemas import Kubeconform
from tests.metrics_page import metrics

RULES = CHART / "files" / "alerts.yaml"
ALERTS: dict[str, JSON] = {
    rule["alert"]: rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]
}
RUNBOOKS = CHART.parents[1] / "docs" / "alerts.md"
LABELS = 'namespace="ballast-system",job="ballast",pod="ballast-0"'
"""That a monitor attaches."""
FAST = 'policy="streaming"'
RARE = 'policy="nightly"'
"""Its interval is an hour."""


def series(name: str, values: str, labels: str = "") -> dict[str, str]:
    return {"series": f"{name}{{{LABELS}{',' if labels else ''}{labels}}}", "values": values}


def hourly(name: str, labels: str) -> list[dict[str, str]]:
    """A time that is renewed each hour."""
    return [series(name, " ".join(f"{hour * 3600}x59" for hour in range(9)), labels)]


HEALTHY = [
    series("ballast_build_info", "1x500"),
    series("ballast_leading", "1x500"),
    series("ballast_passes_total", "0x500", f'{FAST},result="error"'),
    series("ballast_last_pass_timestamp_seconds", "0+60x500", FAST),
    series("ballast_policy_interval_seconds", "60x500", FAST),
    *hourly("ballast_last_pass_timestamp_seconds", RARE),
    series("ballast_policy_interval_seconds", "3600x500", RARE),
    series("ballast_watch_age_seconds", "30x500", 'resource="pods"'),
    series("ballast_api_requests_total", "0+600x500", 'verb="get",resource="pods",code="200"'),
    series("ballast_gate_switched_off", "0x500"),
    series("ballast_gated_too_long_timestamp_seconds", "0x500"),
    *(
        series("ballast_unplaced_executors", f"{int(each not in FAULTS)}x500", f'{FAST},cause="{each}"')
        for each in Cause
    ),
    series("ballast_metrics_unusable", "0x500", f'{FAST},reason="Unreachable"'),
    series("ballast_moves_total", "0x500", f'{FAST},phase="Failed"'),
    series("ballast_paused_topologies", "0x500", FAST),
    series("ballast_policy_stopped", "0x500", FAST),
]
"""One value a minute. Executors have every cause for which nobody need do anything."""
OF_POLICY = {"namespace": "ballast-system", "job": "ballast", "policy": "streaming"}
OF_OPERATOR = {"namespace": "ballast-system", "job": "ballast"}

# What is otherwise than in HEALTHY, and the labels of the alert that then fires after `minutes`.
FIRING: dict[str, tuple[list[dict[str, str]], int, Mapping[str, str]]] = {
    "BallastDown": ([series("ballast_build_info", "1x9 stale")], 60, {}),
    "BallastNoLeader": ([series("ballast_leading", "0x500")], 30, OF_OPERATOR),
    "BallastPassesFail": ([series("ballast_passes_total", "0+1x500", f'{FAST},result="error"')], 30, OF_POLICY),
    "BallastPassesStale": ([series("ballast_last_pass_timestamp_seconds", "60x500", FAST)], 30, OF_POLICY),
    "BallastWatchSilent": (
        [series("ballast_watch_age_seconds", "0+60x500", 'resource="pods"')], 30, {**OF_OPERATOR, "resource": "pods"},
    ),
    "BallastRequestsFail": (
        [series("ballast_api_requests_total", "0+100x500", 'verb="get",resource="pods",code="503"')], 60, OF_OPERATOR,
    ),
    "BallastSwitchedOff": ([series("ballast_gate_switched_off", "1x500")], 60, OF_OPERATOR),
    "BallastGatedTooLong": (
        # Seen once, at 50 minutes, and by no scrape while the executor was gated.
        [series("ballast_gated_too_long_timestamp_seconds", "0x49 3000x500")], 60, OF_OPERATOR,
    ),
    "BallastNotPlaced": (
        [series("ballast_unplaced_executors", "_x30 1x500", f'{FAST},cause="NoRoom"')],
        90, {**OF_POLICY, "cause": "NoRoom"},
    ),
    "BallastMetricsUnusable": (
        [series("ballast_metrics_unusable", "1x500", f'{FAST},reason="Unreachable"')],
        60, {**OF_POLICY, "reason": "Unreachable"},
    ),
    "BallastMovesFail": ([series("ballast_moves_total", "0x20 5x500", f'{FAST},phase="Failed"')], 60, OF_POLICY),
    "BallastMovesPaused": ([series("ballast_paused_topologies", "1x500", FAST)], 120, OF_POLICY),
    "BallastStopped": ([series("ballast_policy_stopped", "1x500", FAST)], 120, OF_POLICY),
}  # fmt: skip


def case(name: str, changed: list[dict[str, str]], minutes: int, alerts: list[JSON]) -> JSON:
    replaced = {each["series"] for each in changed}
    given = [*changed, *(each for each in HEALTHY if each["series"] not in replaced)]
    tests = [{"eval_time": f"{minutes}m", "alertname": name, "exp_alerts": alerts}]
    return {"name": name, "interval": "1m", "input_series": given, "alert_rule_test": tests}


def expected(name: str, labels: Mapping[str, str]) -> JSON:
    rule = ALERTS[name]

    def filled(text: str) -> str:
        return re.sub(r"{{ \$labels\.(\w+) }}", lambda found: labels[found[1]], text)

    annotations = {key: filled(text) for key, text in rule["annotations"].items()}
    return {"exp_labels": {**labels, **rule["labels"]}, "exp_annotations": annotations}


def promtool(folder: Path, cases: list[JSON]) -> subprocess.CompletedProcess[str]:
    file = folder / "cases.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": cases}))
    return subprocess.run(["promtool", "test", "rules", str(file)], capture_output=True, text=True, check=False)


def test_each_alert_fires_on_what_it_is_about(tmp_path: Path) -> None:
    assert FIRING.keys() == ALERTS.keys()
    ended = promtool(
        tmp_path,
        [case(name, changed, at, [expected(name, labels)]) for name, (changed, at, labels) in FIRING.items()],
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_no_alert_fires_where_all_is_well(tmp_path: Path) -> None:
    ended = promtool(tmp_path, [case(name, [], minutes, []) for name in ALERTS for minutes in (90, 400)])
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_an_alert_that_does_not_fire_when_expected_is_noticed(tmp_path: Path) -> None:
    ended = promtool(tmp_path, [case("BallastDown", [], 60, [expected("BallastDown", {})])])
    assert ended.returncode != 0


def test_executors_that_were_gated_too_long_are_no_alert_for_good(tmp_path: Path) -> None:
    once = [series("ballast_gated_too_long_timestamp_seconds", "0x49 3000x500")]
    ended = promtool(tmp_path, [case("BallastGatedTooLong", once, 80, [])])
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_an_interval_of_an_hour_has_an_alert_when_three_passes_are_missing(tmp_path: Path) -> None:
    never = [series("ballast_last_pass_timestamp_seconds", "0x500", RARE)]
    labels = {**OF_POLICY, "policy": "nightly"}
    late = case("BallastPassesStale", never, 185, [expected("BallastPassesStale", labels)])
    ended = promtool(tmp_path, [late, case("BallastPassesStale", never, 175, [])])
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_executors_that_are_not_placed_are_an_alert_by_each_cause_to_see_to_and_by_no_other(tmp_path: Path) -> None:
    def alerts(cause: Cause) -> list[JSON]:
        return [expected("BallastNotPlaced", {**OF_POLICY, "cause": cause.value})] if cause in FAULTS else []

    quiet = [series("ballast_unplaced_executors", "0x500", f'{FAST},cause="{each}"') for each in Cause]

    def alone(cause: Cause) -> list[dict[str, str]]:
        one = series("ballast_unplaced_executors", "1x500", f'{FAST},cause="{cause}"')
        return [one, *(each for each in quiet if each["series"] != one["series"])]

    ended = promtool(tmp_path, [case("BallastNotPlaced", alone(cause), 90, alerts(cause)) for cause in Cause])
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f'cause=~"{FAULTY}"' in ALERTS["BallastNotPlaced"]["expr"]


def test_each_alert_has_a_runbook() -> None:
    headings = re.findall(r"^## (\w+)$", RUNBOOKS.read_text(), re.MULTILINE)
    assert headings == list(ALERTS)


def test_the_rules_of_the_chart_are_those_of_the_file(render: Renderer) -> None:
    values = {"enabled": True, "labels": {"release": "prometheus"}, "alertLabels": {"team": "data"}}
    chosen = {**values, "disabled": ["BallastStopped"], "runbooks": "https://example.com/alerts"}
    (made,) = render({"prometheusRule": chosen}).of("PrometheusRule")
    assert made["metadata"]["labels"]["release"] == "prometheus"
    rules = {rule["alert"]: rule for group in made["spec"]["groups"] for rule in group["rules"]}
    assert rules.keys() == ALERTS.keys() - {"BallastStopped"}
    for name, rule in rules.items():
        assert rule["expr"] == ALERTS[name]["expr"]
        assert rule["labels"] == {**ALERTS[name]["labels"], "team": "data"}
        assert rule["annotations"]["summary"] == ALERTS[name]["annotations"]["summary"]
        assert rule["annotations"]["runbook_url"] == f"https://example.com/alerts#{name.lower()}"


def test_a_group_of_which_all_alerts_are_left_out_is_left_out(render: Renderer, kubeconform: Kubeconform) -> None:
    groups = {
        group["name"]: [r["alert"] for r in group["rules"]] for group in yaml.safe_load(RULES.read_text())["groups"]
    }
    moves = groups.pop("ballast.moves")
    (made,) = render({"prometheusRule": {"enabled": True, "disabled": moves}}).of("PrometheusRule")
    assert [group["name"] for group in made["spec"]["groups"]] == [*groups]
    assert kubeconform.complaints(made) == ""
    assert render({"prometheusRule": {"enabled": True, "disabled": [*ALERTS]}}).of("PrometheusRule") == []


def test_alerts_are_left_out_by_names_that_exist() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert schema["properties"]["prometheusRule"]["properties"]["disabled"]["items"] == {"enum": list(ALERTS)}


KNOWN = {metric.name: metric for metric in metrics()} | {
    f"{metric.name}{suffix}": metric for metric in metrics() if metric.kind == "histogram"
    for suffix in ("_bucket", "_count", "_sum")
}  # fmt: skip
QUERIES = [
    *((f"alert {name}", rule["expr"]) for name, rule in ALERTS.items()),
    *(
        (f"{dashboard.name}: {panel.title}", query)
        for dashboard in DASHBOARDS
        for panel in dashboard.panels
        for query in panel.queries.values()
    ),
    *((f"{dashboard.name}: ${name}", query) for dashboard in DASHBOARDS for name, query in dashboard.variables.items()),
]


@pytest.mark.parametrize(("where", "query"), QUERIES, ids=[where for where, _ in QUERIES])
def test_a_query_asks_for_metrics_and_labels_that_exist(where: str, query: str) -> None:
    asked = re.findall(r"(ballast_\w+)(?:{([^}]*)})?", query)
    assert asked or "process_" in query, where
    for name, matchers in asked:
        metric = KNOWN[name]
        labels = set(re.findall(r"(\w+)(?:=~|!~|!=|=)", matchers))
        assert labels <= {*metric.labels, "le"}, f"{where}: {name} has {metric.labels}"


def test_prometheus_can_read_every_query_of_a_dashboard(tmp_path: Path) -> None:
    rules = [
        {"record": f"query:{index}", "expr": query.replace("$policy", ".+").replace("$topology", ".+")}
        for index, (_, query) in enumerate(QUERIES)
        if not query.startswith("label_values(")
    ]
    file = tmp_path / "queries.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}))
    ended = subprocess.run(["promtool", "check", "rules", str(file)], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_the_dashboards_are_current_and_arrive_for_grafanas_sidecar(render: Renderer) -> None:
    assert {path.name for path in FOLDER.iterdir()} == {dashboard.file.name for dashboard in DASHBOARDS}
    made = render({"dashboards": {"enabled": True, "annotations": {"grafana_folder": "Ballast"}}}).of("ConfigMap")
    assert len(made) == len(DASHBOARDS)
    for dashboard in DASHBOARDS:
        assert dashboard.file.read_text() == dashboard.text(), "run `make generate`"
        (found,) = (each for each in made if each["metadata"]["name"] == f"ballast-dashboard-{dashboard.name}")
        assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert found["metadata"]["annotations"] == {"grafana_folder": "Ballast"}
        assert json.loads(found["data"][dashboard.file.name]) == json.loads(dashboard.text())


def test_grafana_can_tell_panels_and_queries_apart() -> None:
    for dashboard in DASHBOARDS:
        panels: list[dict[str, Any]] = json.loads(dashboard.text())["panels"]
        assert len({panel["id"] for panel in panels}) == len(panels)
        for panel in panels:
            references = [target["refId"] for target in panel["targets"]]
            assert "" not in references
            assert len(set(references)) == len(references)
