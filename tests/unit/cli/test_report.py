"""`ballast report` about a snapshot file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from ballast.cli.applications import reads_kafka
from ballast.cli.situation import load
from ballast.doctor.shuffle_service import service_of
from ballast.doctor.submission import properties
from examples.report.pool import situation
from tests.apiserver import ApiServer, kubeconfig, serving
from tests.unit.cli.program import Ended, run

SNAPSHOT = str(Path(__file__).parents[3] / "examples" / "report" / "snapshot.yaml")
"""Described in docs/report.md."""


def document(*options: str) -> dict[str, object]:
    ended = run("report", "-f", SNAPSHOT, "-o", "json", *options)
    assert ended.code == 0, ended.err
    found: dict[str, object] = json.loads(ended.out)
    return found


def test_the_snapshot_is_what_its_program_writes() -> None:
    assert load(Path(SNAPSHOT)) == situation()


def test_the_documentation_shows_what_the_command_prints() -> None:
    page = (Path(SNAPSHOT).parents[2] / "docs" / "report.md").read_text(encoding="utf-8")
    shown = page.partition("$ ballast report -f examples/report/snapshot.yaml\n")[2].partition("```")[0]
    printed = run("report", "-f", SNAPSHOT).out
    assert [line.rstrip() for line in shown.splitlines()] == [line.rstrip() for line in printed.splitlines()]


def test_the_headline_comes_first() -> None:
    ended = run("report", "-f", SNAPSHOT)
    assert ended.code == 0, ended.err
    assert ended.out.splitlines()[0] == document()["headline"]


def test_the_cost_of_the_example_is_what_its_bytes_and_the_list_price_make() -> None:
    """shop/clicks: 96 MiB/s, two thirds of it across zones, 0.02 USD a GiB, 730 hours."""
    (clicks,) = [each for each in document()["applications"] if each["application"] == "shop/clicks"]  # type: ignore[attr-defined]
    assert clicks["before"]["costPerMonth"] == pytest.approx(96 / 1024 * 2 / 3 * 730 * 3600 * 0.02, abs=0.001)


def test_a_namespace_shows_its_applications_alone() -> None:
    keys = [each["application"] for each in document("-n", "shop")["applications"]]  # type: ignore[attr-defined]
    assert keys == ["shop/clicks", "shop/enrich"]
    assert document("-A") == document()


def test_ones_own_price_wins_over_the_list() -> None:
    listed, own = document(), document("--price-per-gib", "0.005")
    assert own["costPerMonth"] == pytest.approx(float(str(listed["costPerMonth"])) / 2, abs=0.01)


def test_each_direction_is_priced_by_itself() -> None:
    aws, gcp = document("--cloud", "aws"), document("--cloud", "gcp")
    out = aws["costPerMonthByDirection"]["out"]  # type: ignore[index]
    assert aws["costPerMonthByDirection"] == {"out": out, "in": out}
    assert gcp["costPerMonthByDirection"] == {"out": out, "in": 0.0}
    assert aws["costPerMonth"] == pytest.approx(2 * out, abs=0.01)


def test_it_shows_where_ballast_would_have_placed_each_executor() -> None:
    (clicks,) = [each for each in document()["applications"] if each["application"] == "shop/clicks"]  # type: ignore[attr-defined]
    assert clicks["zones"] == {"eu-1a": 4, "eu-1b": 4, "eu-1c": 4}
    assert sum(clicks["placedZones"].values()) == 12
    assert len(clicks["placedZones"]) == 1


def test_where_zones_are_free_no_money_is_promised() -> None:
    headline = str(document("--cloud", "azure")["headline"])
    assert "$" not in headline
    assert "no money is saved" in headline


def test_every_number_of_bytes_says_where_it_comes_from() -> None:
    volumes = {each["application"]: each["volume"] for each in document()["applications"]}  # type: ignore[attr-defined]
    assert (volumes["shop/clicks"], volumes["shop/enrich"]) == ("Measured", "UpperBound")


def test_an_application_behind_a_remote_shuffle_service_has_nothing_to_gain() -> None:
    ended = run("report", "-f", SNAPSHOT)
    (line,) = [line for line in ended.out.splitlines() if line.startswith("ads/attribution ")]
    assert "nothing to gain: remote shuffle service" in line


def test_the_page_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    ended = run("report", "-f", SNAPSHOT, "--report", str(file))
    page = file.read_text(encoding="utf-8")
    assert ended.code == 0, ended.err
    assert "<svg" in page
    assert page.index("Placing would save") < page.index("UTC by ballast ") < page.index("<svg")
    assert "shop/clicks" in page
    assert "<li>ads/attribution: remote shuffle service" in page
    assert not any(word in page for word in ("src=", "href=", "url(", "@import"))


def test_an_unknown_application_is_refused_with_those_that_there_are() -> None:
    ended = run("report", "-f", SNAPSHOT, "--remote-shuffle", "shop/nosuch")
    assert ended.code == 2
    assert "shop/clicks" in ended.err


def test_an_application_that_reads_kafka_may_be_named_with_the_zones_of_its_brokers() -> None:
    found = document("--kafka", "ads/billing", "--broker-zones", "eu-1a, eu-1b")
    (each,) = [each for each in found["applications"] if each["application"] == "ads/billing"]  # type: ignore[attr-defined]
    # 6 MiB/s at each of four executors, less 2 MiB/s of shuffle of which three quarters come from others.
    assert (each["reads"]["volume"], each["reads"]["bytesPerSecond"]) == ("UpperBound", 12 * 2**20)
    assert each["reads"]["crossZoneBytesPerSecond"] == 6 * 2**20
    assert any("Brokers assumed to lead equal parts in eu-1a, eu-1b" in line for line in found["basis"])  # type: ignore[attr-defined]
    gap = run("report", "-f", SNAPSHOT, "--broker-zones", "eu-1a,,eu-1b")
    assert gap.code == 2
    assert "--broker-zones" in gap.err


@pytest.mark.parametrize(
    ("conf", "remotely", "kafka"),
    [
        ("", False, False),
        ("spark.shuffle.manager=sort", False, False),
        ("spark.shuffle.manager=org.apache.spark.shuffle.celeborn.SparkShuffleManager", True, False),
        ("spark.shuffle.manager=org.apache.spark.shuffle.RssShuffleManager", True, False),
        (r"spark.jars.packages=org.apache.spark\:spark-sql-kafka-0-10_2.13\:4.0.1", False, True),
        ("spark.jars=local:///opt/spark-sql-kafka-0-10_2.13-4.0.1.jar", False, True),
    ],
)
def test_the_configuration_tells_of_remote_shuffle_and_kafka(conf: str, remotely: bool, kafka: bool) -> None:
    read = properties(conf)
    assert (service_of(read) is not None, reads_kafka(read)) == (remotely, kafka)


def test_a_files_metrics_are_not_mixed_with_a_servers() -> None:
    ended = run("report", "-f", SNAPSHOT, "--prometheus", "http://localhost:1")
    assert ended.code == 2
    assert "--prometheus" in ended.err


FIELD = Path(__file__).parents[2] / "field"


def reported_of(folder: Path, *objects: dict[str, Any], options: tuple[str, ...] = ()) -> Ended:
    """The report about a cluster that has these objects and nothing of Ballast's, unless they are."""
    server = ApiServer()
    plurals = {"Node": "nodes", "Pod": "pods", "ConfigMap": "configmaps", "SparkTopology": "sparktopologies"}
    for each in objects:
        server.put(plurals[each["kind"]], each)
    with serving(server):
        return run("report", "--kubeconfig", str(kubeconfig(folder, server.url)), *options)


def of_the_field() -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = json.loads((FIELD / "26-nodes-eks/objects.json").read_text(encoding="utf-8"))["items"]
    return items


def test_26_what_is_not_measured_is_not_said_to_cost_nothing(tmp_path: Path) -> None:
    ended = reported_of(tmp_path, *of_the_field())
    assert ended.code == 0, ended.err
    assert "costs nothing" not in ended.out
    assert "$0" not in ended.out
    assert "the money is not known without shuffle bytes: pass --prometheus" in ended.out.splitlines()[0]


def test_26_applications_are_shown_by_their_names(tmp_path: Path) -> None:
    rows = {line.split()[0] for line in reported_of(tmp_path, *of_the_field()).out.splitlines() if line.strip()}
    assert {"analytics/clicks", "analytics/chopper", "analytics/gluten"} <= rows
    found = json.loads(reported_of(tmp_path, *of_the_field(), options=("-o", "json")).out)
    names = {each["name"]: each["application"] for each in found["applications"]}
    assert names["analytics/clicks"] == "analytics/spark-0f1e2d3c4b5a69788796a5b4c3d2e1f0"
    assert found["costPerMonth"] is None


def test_26_a_shuffle_through_a_service_or_object_store_is_known_by_its_class(tmp_path: Path) -> None:
    found = json.loads(reported_of(tmp_path, *of_the_field(), options=("-o", "json")).out)
    remote = {each["name"]: each["remoteShuffle"] for each in found["applications"]}
    assert remote == {"analytics/clicks": False, "analytics/chopper": True, "analytics/gluten": True}
    assert all(each["before"]["costPerMonth"] is None for each in found["applications"])


@pytest.mark.parametrize("form", ["json", "yaml", "parts"])
def test_26_what_kubectl_printed_is_reported_as_the_cluster_is(tmp_path: Path, form: str) -> None:
    items = of_the_field()
    nodes = [{key: value for key, value in each.items() if key != "kind"} for each in items if each["kind"] == "Node"]
    others = {"kind": "List", "items": [each for each in items if each["kind"] != "Node"]}
    texts = {
        "json": json.dumps({"kind": "List", "items": items}),
        "yaml": yaml.safe_dump({"kind": "List", "items": items}),
        "parts": f"{json.dumps(others, indent=1)}\n{json.dumps({'kind': 'NodeList', 'items': nodes})}",
    }
    file = tmp_path / "cluster"
    file.write_text(texts[form], encoding="utf-8")
    found = run("report", "-f", str(file), "-o", "json")
    assert found.code == 0, found.err
    asked = reported_of(tmp_path, *of_the_field(), options=("-o", "json"))
    assert {**json.loads(found.out), "time": ""} == {**json.loads(asked.out), "time": ""}


@pytest.mark.parametrize(
    ("kinds", "words"),
    [
        ({"Pod"}, "no node in it, and nodes have the zones"),
        ({"Node"}, "no pod in it; it has Node"),
        (set(), "no pod in it"),
    ],
)
def test_a_file_that_lacks_what_a_report_needs_says_what(tmp_path: Path, kinds: set[str], words: str) -> None:
    file = tmp_path / "some.json"
    file.write_text(json.dumps({"kind": "List", "items": [each for each in of_the_field() if each["kind"] in kinds]}))
    ended = run("report", "-f", str(file))
    assert (ended.code, words in ended.err) == (2, True)
    assert "kubectl get nodes,pods,configmaps -A -o json" in ended.err


@pytest.mark.parametrize("name", ["table.txt", "described.txt"])
@pytest.mark.parametrize("command", ["report", "discover"])
def test_what_kubectl_prints_for_people_is_known_for_such(command: str, name: str) -> None:
    ended = run(command, "-f", str(FIELD / "kubectl" / name))
    assert "it is what kubectl prints for people" in ended.err


def test_a_file_without_configurations_says_what_they_would_tell(tmp_path: Path) -> None:
    file = tmp_path / "some.json"
    items = [each for each in of_the_field() if each["kind"] != "ConfigMap"]
    file.write_text(json.dumps({"kind": "List", "items": items}))
    found = json.loads(run("report", "-f", str(file), "-o", "json").out)
    assert any("the file has no ConfigMaps of drivers in analytics" in each for each in found["problems"])


def test_a_pod_that_was_shortened_too_far_is_named(tmp_path: Path) -> None:
    file = tmp_path / "some.json"
    file.write_text(
        json.dumps({"kind": "List", "items": [*of_the_field(), {"kind": "Pod", "metadata": {"name": "x"}}]})
    )
    ended = run("report", "-f", str(file))
    assert "Pod x is not valid" in ended.err
    assert "it lacks 'spec'" in ended.err


def test_an_application_may_be_named_as_it_is_shown(tmp_path: Path) -> None:
    options = ("--remote-shuffle", "analytics/clicks", "-o", "json")
    found = json.loads(reported_of(tmp_path, *of_the_field(), options=options).out)
    assert all(each["remoteShuffle"] for each in found["applications"])


def test_two_applications_of_one_name_are_told_apart_by_their_ids(tmp_path: Path) -> None:
    changed = of_the_field()
    for each in changed:
        labels = each["metadata"].get("labels", {})
        if labels.get("spark-app-name") == "chopper":
            labels["spark-app-name"] = "clicks"
    out = reported_of(tmp_path, *changed).out
    assert "analytics/clicks (spark-0f1e2d3c4b5a69788796a5b4c3d2e1f0)" in out
    assert "analytics/clicks (spark-11112222333344445555666677778888)" in out


def test_a_report_about_a_cluster_heeds_what_its_topologies_declare(tmp_path: Path) -> None:
    topology = {
        "apiVersion": "ballast.dev/v1alpha1",
        "kind": "SparkTopology",
        "metadata": {"name": "clicks", "namespace": "analytics"},
        "spec": {
            "components": [
                {
                    "name": "clicks",
                    "selector": {"matchLabels": {"spark-app-name": "clicks"}},
                    "exchange": {"bytesPerSecond": "8Mi"},
                },
                {"name": "kafka", "external": {"zones": {"us-east-1a": 1}}},
            ],
            "streams": [{"from": "kafka", "to": "clicks", "rate": {"bytesPerSecond": "8Mi"}}],
        },
    }
    found = json.loads(reported_of(tmp_path, *of_the_field(), topology, options=("-o", "json")).out)
    (clicks,) = [each for each in found["applications"] if each["name"] == "analytics/clicks"]
    assert clicks["traffic"] == "Declared"
    # Two executors in each of three zones: two thirds of the exchange and of the reads cross zones.
    assert clicks["before"]["crossZone"] == pytest.approx(2 / 3, abs=1e-3)
    # At most two fit a node, so four are next to the brokers: (1 - 20 / 36 + 2 / 6) ÷ 2.
    assert clicks["after"]["crossZone"] == pytest.approx(0.389, abs=1e-3)
    assert clicks["placedZones"]["us-east-1a"] == 4


@pytest.mark.parametrize("application", ["shop/clicks", "shop/enrich", "ml/features", "ads/attribution", "ads/billing"])
def test_report_plan_and_status_give_one_answer_for_an_application(application: str) -> None:
    found = {
        command: json.loads(run(command, "-f", SNAPSHOT, "-o", "json").out) for command in ("report", "plan", "status")
    }
    (reported,) = [each for each in found["report"]["applications"] if each["application"] == application]
    (planned,) = [each for each in found["plan"]["plans"][0]["topologies"] if each["topology"] == application]
    (seen,) = [each for each in found["status"]["policies"][0]["topologies"] if each["topology"] == application]
    assert reported["traffic"] == planned["traffic"] == seen["traffic"]
    for here, there in (("crossZone", "crossZoneRatio"), ("crossRack", "crossRackRatio")):
        assert reported["before"][here] == planned["locality"]["before"][there] == seen["locality"][there]
        assert reported["after"][here] == planned["locality"]["after"][there]


def test_the_commands_say_what_the_shares_are_of() -> None:
    for command in ("report", "plan", "status"):
        lines = run(command, "-f", SNAPSHOT).out.splitlines()
        rows = [line for line in lines if line.startswith(("shop/clicks ", "shop/enrich ")) and "%" in line]
        told = {line.split()[0]: line for line in rows}
        assert " measured " in told["shop/clicks"], command
        assert " equal " in told["shop/enrich"], command
