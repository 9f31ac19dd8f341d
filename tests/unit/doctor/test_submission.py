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


OPTIONS = "--conf spark.a=1 x.py"


@pytest.mark.parametrize(
    "text",
    [
        f"exec nohup spark-submit {OPTIONS}",
        f"sudo -E -u spark env HADOOP_USER_NAME=x nice -n 5 timeout 2h spark-submit {OPTIONS}",
        f"time -p spark-submit {OPTIONS}",
        f"/usr/bin/tini -s -- /opt/spark/bin/spark-submit {OPTIONS}",
        f"gosu spark spark-submit {OPTIONS}",
        f"if ! spark-submit {OPTIONS}; then exit 1; fi",
        f"su - spark -c 'spark-submit {OPTIONS}'",
        f"sudo bash -lc 'cd /opt && spark-submit {OPTIONS}'",
        f"ssh -p 22 me@host 'spark-submit {OPTIONS}'",
        f"ssh me@host spark-submit {OPTIONS}",
        f"srun -N 1 spark-submit {OPTIONS}",
        f"kubectl exec -it pyspark -n a -- spark-submit {OPTIONS}",
        f"kubectl exec -it a -- bash -c 'spark-submit {OPTIONS}'",
        f"docker run --rm --name pyspark apache/spark spark-submit {OPTIONS}",
        f"docker compose exec pyspark spark-submit {OPTIONS}",
        f"poetry run spark-submit {OPTIONS}",
        f"cat jobs | xargs -I J -n 1 spark-submit {OPTIONS}",
        f'run() {{\n  echo "+ $*"\n  "$@"\n}}\nrun spark-submit {OPTIONS}',
        f"OUT=$(spark-submit {OPTIONS} 2>&1)",
        f'echo "$(spark-submit {OPTIONS})"',
        f"id=`spark-submit {OPTIONS} | tail -1`",
        f"$SUDO spark-submit {OPTIONS}",
        f'eval "spark-submit {OPTIONS}"',
        f"$SPARK_HOME/bin/spark-submit {OPTIONS}",
        f"cat <<EOF > job.sh\nspark-submit {OPTIONS}\nEOF",
        f"which spark-submit\nspark-submit --version\nspark-submit {OPTIONS}\necho 'spark-submit {OPTIONS}'",
    ],
)
def test_a_submission_is_found_behind_the_commands_that_start_it(text: str) -> None:
    found = from_command(text, "submit.sh")
    assert (found.conf, found.arguments) == ({"spark.a": "1"}, ("x.py",))


@pytest.mark.parametrize(
    "text",
    [
        "which spark-submit",
        f'log() {{ echo "$@"; }}\nlog spark-submit {OPTIONS}',
        "command -v spark-submit",
        "pip install pyspark==3.5.1 --quiet",
        "sudo -H pip install pyspark --quiet",
        "echo spark-submit --conf spark.a=1 x.py",
        "printf '%s\\n' 'spark-submit --conf spark.a=1 x.py'",
        "cp spark-submit /opt",
        "docker pull pyspark",
        "docker build -t pyspark .",
        "docker run --rm -it pyspark bash -c ls",
        "kubectl exec pyspark -- ls",
        "kubectl logs pyspark -f",
        "spark-submit",
        "spark-submit --version",
        "spark-submit --help",
        "python3 - <<EOF\nspark-submit --conf spark.a=1 x.py\nEOF",
        "cat <<EOF | python3 -\nspark-submit --conf spark.a=1 x.py\nEOF",
    ],
)
def test_a_mention_of_spark_submit_is_no_submission(text: str) -> None:
    with pytest.raises(InvalidField, match="no spark-submit in it"):
        from_command(text, "submit.sh")


@pytest.mark.parametrize(
    ("text", "arguments", "passed"),
    [
        ("spark-submit --conf spark.a=1 x.py <app jar>", ("x.py", "<app jar>"), ["<app jar>"]),
        ("spark-submit --conf spark.a=1 x.py <in >out", ("x.py",), []),
        ("cat <<EOF > f\nspark-submit --conf spark.a=1 x.py\nEOF", ("x.py",), []),
        ("cat <<EOF>f\nspark-submit --conf spark.a=1 x.py\nEOF", ("x.py",), []),
        (
            "spark-submit --master k8s://<host>:<port> --conf spark.a=1 x.py",
            ("x.py",),
            ["<host>", "<port>"],
        ),
        ('CMD="spark-submit --master $M --conf spark.a=1 x.py"\neval "$CMD"', ("x.py",), ["$M"]),
        ('bash -c "spark-submit --conf spark.a=1 x.py $ARGS"', ("x.py", "$ARGS"), ["$ARGS"]),
        ("bash -c \"spark-submit --conf spark.a=1 x.py '$ARGS'\"", ("x.py", "$ARGS"), ["$ARGS"]),
        ("spark-submit --conf spark.a=1 x.py '{{ day }}'", ("x.py", "{{ day }}"), ["{{ day }}"]),
        (
            "spark-submit --conf spark.a=1 x.py $'\\U1F680' $'\\x1' $'é\\t\\'\\z'",
            ("x.py", "\U0001f680", "\x01", "é\t'\\z"),
            [],
        ),
    ],
)
def test_placeholders_unknown_variables_and_escapes_are_kept_apart(
    text: str, arguments: tuple[str, ...], passed: list[str]
) -> None:
    found = from_command(text, "submit.sh")
    assert found.conf["spark.a"] == "1"
    assert (found.arguments, [each.what for each in found.passed]) == (arguments, passed)


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("# off: \\\nspark.a 1\n", {"spark.a": "1"}),
        ("spark.a one\\\r\n  two\r\nspark.b 2\r\n", {"spark.a": "onetwo", "spark.b": "2"}),
        ("spark.a one\\\n#two\n", {"spark.a": "one#two"}),
        ("spark.a c:\\\\\nspark.b 2", {"spark.a": "c:\\\\", "spark.b": "2"}),
        ("spark.a 1\\ \nspark.b 2", {"spark.a": "1\\", "spark.b": "2"}),
        ("spark.a 1\\", {"spark.a": "1"}),
        ("spark.a 1 \\\n\nspark.b 2", {"spark.a": "1", "spark.b": "2"}),
    ],
)
def test_a_properties_file_joins_lines_as_java_does(text: str, settings: dict[str, str]) -> None:
    assert properties(text) == settings
