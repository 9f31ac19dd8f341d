"""Command lines, properties files and SparkApplications are read as Spark and its operators read them."""

from __future__ import annotations

import pytest

from ballast.doctor.command import from_script
from ballast.doctor.resources import from_documents
from ballast.doctor.submission import Submission, properties
from ballast.errors import InvalidField

COMMAND = r"""
KUBECONFIG=x /opt/spark/bin/spark-submit --master k8s://https://example:6443 --verbose \
  --properties-file base.conf --conf "spark.app.name=two words" -c spark.executor.instances=2 \
  --conf=spark.locality.wait=0s --num-executors 6 --packages a:b:1,c:d:2 \
  --conf spark.kubernetes.executor.label.team=data \
  local:///job.py --conf of-the-job
"""

KUBEFLOW = """
apiVersion: v1
kind: Namespace
---
apiVersion: sparkoperator.k8s.io/v1beta2
kind: ScheduledSparkApplication
metadata: {name: nightly}
spec:
  schedule: "@daily"
  template:
    sparkConf: {spark.decommission.enabled: true, spark.kubernetes.executor.label.team: conf}
    deps: {packages: ["a:b:1"]}
    arguments: [--from, kafka]
    dynamicAllocation: {enabled: true}
    driver: {labels: {role: driver}}
    executor:
      instances: 4
      terminationGracePeriodSeconds: 120
      labels: {team: field}
      template: {metadata: {labels: {from: template}}}
"""

APACHE = """
apiVersion: spark.apache.org/v1
kind: SparkApplication
metadata: {name: clicks}
spec:
  driverArgs: ["1"]
  sparkConf: {spark.locality.wait: "0s"}
  executorSpec: {podTemplateSpec: {metadata: {labels: {ballast.dev/topology: clicks}}}}
"""


def from_command(text: str, source: str, defaults: dict[str, str] | None = None) -> Submission:
    (found,) = from_script(text, source, lambda name: defaults if name == "base.conf" else None)
    return found


def test_a_command_line_gives_settings_labels_packages_and_arguments() -> None:
    found = from_command(COMMAND, "submit.sh")
    assert found.conf["spark.app.name"] == "two words"
    assert found.conf["spark.executor.instances"] == "6"
    assert found.conf["spark.locality.wait"] == "0s"
    assert found.executor_labels == {"team": "data"}
    assert found.packages == "a:b:1,c:d:2"
    assert found.arguments == ("local:///job.py", "--conf", "of-the-job")


def test_the_command_line_overrides_its_properties_file() -> None:
    found = from_command(COMMAND, "submit.sh", defaults={"spark.locality.wait": "3s", "spark.task.cpus": "2"})
    assert (found.conf["spark.locality.wait"], found.conf["spark.task.cpus"]) == ("0s", "2")


@pytest.mark.parametrize("text", ["kubectl get pods", "spark-submit --conf spark.a"])
def test_what_is_no_command_line_of_spark_is_refused(text: str) -> None:
    with pytest.raises(InvalidField):
        from_command(text, "command")


def test_a_properties_file_has_three_separators_and_comments() -> None:
    text = "# comment\n! too\n\nspark.a 1\nspark.b=2 = 3\nspark.c : x y\nspark.d one\\\ntwo\n"
    assert properties(text) == {"spark.a": "1", "spark.b": "2 = 3", "spark.c": "x y", "spark.d": "onetwo"}


def test_a_line_without_a_value_is_refused() -> None:
    with pytest.raises(InvalidField, match="line 2"):
        properties("spark.a 1\nspark.b")


def test_kubeflows_fields_become_settings_and_win_over_its_conf() -> None:
    (found,) = from_documents(KUBEFLOW, "app.yaml")
    assert found.source == "app.yaml: ScheduledSparkApplication nightly"
    assert found.conf["spark.decommission.enabled"] == "true"
    assert found.conf["spark.dynamicAllocation.enabled"] == "true"
    assert found.conf["spark.executor.instances"] == "4"
    assert found.executor.grace_seconds == 120.0
    assert found.executor_labels == {"team": "field", "from": "template"}
    assert found.driver_labels == {"role": "driver"}
    assert (found.packages, found.arguments) == ("a:b:1", ("--from", "kafka"))


def test_apaches_application_has_its_labels_in_the_pod_template() -> None:
    (found,) = from_documents(APACHE, "-")
    assert found.executor_labels == {"ballast.dev/topology": "clicks"}
    assert found.arguments == ("1",)


@pytest.mark.parametrize("text", ["", "kind: Pod", "{", "[1, 2]"])
def test_a_file_without_an_application_is_refused(text: str) -> None:
    with pytest.raises(InvalidField, match=r"app.yaml"):
        from_documents(text, "app.yaml")
