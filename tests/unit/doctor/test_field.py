"""Inputs of the field (tests/field) and others of their kinds: what is read of them, and what is found."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ballast.doctor.catalog import Finding
from ballast.doctor.command import from_script
from ballast.doctor.foresight import runs_alone, serial_by_default
from ballast.doctor.pod_template import with_pod_template
from ballast.doctor.real_time import asks_for_real_time
from ballast.doctor.resources import from_documents
from ballast.doctor.submission import Submission, properties
from ballast.doctor.submission_checks import Expectations, check, patch
from ballast.errors import InvalidField
from ballast.planner.discovery import query_of
from ballast.sizing import progress
from tests.unit.cli.program import run

FIELD = Path(__file__).parents[2] / "field"


def script(text: str, files: dict[str, str] | None = None) -> Submission:
    (found,) = scripts(text, files)
    return found


def scripts(text: str, files: dict[str, str] | None = None) -> list[Submission]:
    known = files or {}
    return from_script(text, "submit.sh", lambda name: properties(known[name]) if name in known else None)


def case(name: str) -> Submission:
    (found,) = cases(name)
    return found


def cases(name: str) -> list[Submission]:
    text = (FIELD / name).read_text(encoding="utf-8")
    return scripts(text) if name.endswith(".sh") else from_documents(text, name)


def findings(app: Submission) -> dict[str, Finding]:
    return {each.id: each for each in check([app], Expectations())}


def passed(app: Submission) -> list[str]:
    return [each.what for each in app.passed]


def kubeflow(spec: str, metadata: str = "name: a") -> Submission:
    (found,) = from_documents(kubeflow_text(spec, metadata), "a.yaml")
    return found


def kubeflow_text(spec: str, metadata: str = "name: a") -> str:
    return f"apiVersion: sparkoperator.k8s.io/v1beta2\nkind: SparkApplication\nmetadata: {{{metadata}}}\nspec: {spec}"


def test_01_a_hash_within_a_word_begins_no_comment() -> None:
    with_hash, without = case("01-archives-hash/submit.sh"), case("01-archives-hash/submit-without-hash.sh")
    assert with_hash.conf == without.conf
    assert findings(with_hash) == {}


def test_02_options_behind_a_variable_are_read_and_the_variable_is_named() -> None:
    app = case("02-shell-variable/submit.sh")
    assert app.conf["spark.locality.wait"] == "0s"
    assert "${SPARK_SUBMIT_ARGS}" in passed(app)
    assert "DecommissionOff" not in findings(app)
    assert "is not in what was read" in findings(app)["FailuresNeverExpire"].what


def test_02_an_array_of_the_same_script_is_expanded() -> None:
    app = case("02-shell-variable/submit-array.sh")
    assert (app.conf["spark.decommission.enabled"], app.conf["spark.executor.instances"]) == ("true", "4")
    assert {"$MASTER", "$APP", "$@"} <= set(passed(app))


def test_02_a_properties_file_behind_a_variable_is_named_as_not_read() -> None:
    app = case("02-shell-variable/submit-properties.sh")
    assert "the properties file ${APP_HOME}/conf/spark-app.conf" in passed(app)
    assert "not in what was read" in findings(app)["DecommissionOff"].what


@pytest.mark.parametrize(
    ("text", "conf", "named"),
    [
        ("A=1\nspark-submit --conf spark.a=$A x.py", {"spark.a": "1"}, []),
        ("export A=1 B=2\nspark-submit --conf spark.a=${A}$B x.py", {"spark.a": "12"}, []),
        ("O='--conf spark.a=1 --conf spark.b=2'\nspark-submit $O x.py", {"spark.a": "1", "spark.b": "2"}, []),
        (
            "A=(--conf spark.a=1)\nA+=(--conf spark.b=2)\nspark-submit ${A[@]} x.py",
            {"spark.a": "1", "spark.b": "2"},
            [],
        ),
        ("spark-submit $(cat opts) --conf spark.a=1 x.py", {"spark.a": "1"}, ["$(cat opts)"]),
        ("spark-submit --conf spark.a=`nproc` --conf spark.b=1 x.py", {"spark.b": "1"}, ["`nproc`"]),
        ("spark-submit --conf spark.a=${A:-1} x.py", {"spark.a": "1"}, ["${A:-1}, read as its default"]),
        ("spark-submit --conf spark.a={{ n }} --conf spark.b=1 x.py", {"spark.b": "1"}, ["{{ n }}"]),
        ("spark-submit --conf spark.a=<n> --conf spark.b=1 x.py", {"spark.b": "1"}, ["<n>"]),
        ("spark-submit \\\r\n  --conf spark.a=1 \\\r\n  x.py\r\n", {"spark.a": "1"}, []),
        ("bash -c 'spark-submit --conf spark.a=1 x.py'", {"spark.a": "1"}, []),
        ("ssh h <<E\nspark-submit --conf spark.a=1 x.py\nE\n", {"spark.a": "1"}, []),
        ("C='spark-submit --conf spark.a=1'\neval $C x.py", {"spark.a": "1"}, []),
        ("$SUBMIT --conf spark.a=1 x.py", {"spark.a": "1"}, []),
        ('set -- --conf spark.a=1\nspark-submit "$@" x.py', {"spark.a": "1"}, []),
        ("spark-submit --conf 'spark.a=it'\"'\"'s' x.py", {"spark.a": "it's"}, []),
        ("docker run i spark-submit --conf spark.a=1 x.py", {"spark.a": "1"}, []),
        ("k exec spark -c spark -- ./bin/spark-submit --conf spark.a=1 x.py", {"spark.a": "1"}, []),
        ("spark3-submit --conf=spark.a=1 x.py", {"spark.a": "1"}, []),
        (': ${N:="2"}\nspark-submit --conf spark.a=$N x.py', {"spark.a": "2"}, ['${N:="2"}, read as its default']),
        (
            "C='spark-submit --conf spark.a=1'\nC=\"$C --conf spark.b=2\"\nC+=' x.py'\n$C",
            {"spark.a": "1", "spark.b": "2"},
            [],
        ),
        ("docker run --rm --entrypoint spark-submit -v a:b -it i --conf spark.a=1 x.py", {"spark.a": "1"}, []),
        ("sudo docker run --entrypoint=/opt/spark/bin/spark-submit i --conf spark.a=1 x.py", {"spark.a": "1"}, []),
        ("docker compose run --rm --entrypoint spark-submit spark --conf spark.a=1 x.py", {"spark.a": "1"}, []),
        (
            "spark-submit --load-spark-defaults --conf spark.a=1 x.py",
            {"spark.a": "1"},
            ["spark-defaults.conf of the Spark that submits"],
        ),
        (
            "if x; then A=1; else A=2; fi\nspark-submit --conf spark.a=$A --conf spark.b=1 x.py",
            {"spark.b": "1"},
            ["$A"],
        ),
        (
            'A=(--conf spark.a=1)\nif x; then A+=(--conf spark.b=1); fi\nspark-submit "${A[@]}" --conf spark.c=1 x.py',
            {"spark.a": "1", "spark.c": "1"},
            ["what a branch adds to A"],
        ),
        (
            "spark-submit \\\n --conf spark.a=1 \\\n # no\n --conf spark.b=1 x.py",
            {"spark.a": "1"},
            ["line 4, which begins with --conf and which the shell takes for a new command"],
        ),
    ],
)
def test_scripts_of_many_kinds_are_read_as_the_shell_does(text: str, conf: dict[str, str], named: list[str]) -> None:
    app = script(text)
    assert (app.conf, passed(app)) == (conf, named)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("spark-submit \u2013master k8s://h \u2013conf spark.a=1 x.py", "dash or a quote that no shell knows"),
        ("spark-submit --conf \u201cspark.a=1\u201d x.py", "dash or a quote that no shell knows"),
        ("spark-submit \\ \n  --conf spark.a=1 \\ \n  x.py", "line 1 has a space behind its last backslash"),
        ('CMD ["/opt/spark/bin/spark-submit", "--conf", "spark.a=1"]', "give the command line alone"),
        ("bin\\spark-submit ^\n  --conf spark.a=1 ^\n  x.py", "give the command line alone"),
    ],
)
def test_a_command_that_no_shell_reads_is_refused_with_what_is_wrong(text: str, words: str) -> None:
    with pytest.raises(InvalidField, match=words):
        scripts(text)


def test_every_submission_of_a_script_is_read() -> None:
    found = scripts("spark-submit --conf spark.a=1 x.py\nspark-submit --conf spark.a=2 y.py")
    assert [(each.source, each.conf["spark.a"]) for each in found] == [
        ("submit.sh: line 1", "1"),
        ("submit.sh: line 2", "2"),
    ]


def test_nothing_is_said_of_a_setting_whose_value_is_not_known() -> None:
    app = script("spark-submit --conf spark.decommission.enabled=$D --conf spark.locality.wait=$W x.py")
    assert not {"DecommissionOff", "LocalityWait"} & set(findings(app))


def test_03_dynamic_allocation_of_kubeflow_counts_as_in_its_conf() -> None:
    field, conf = (case(f"03-kubeflow-dynamic-allocation/{name}.yaml") for name in ("application", "same-as-conf"))
    assert findings(field)["FailuresNeverExpire"].what == findings(conf)["FailuresNeverExpire"].what
    assert field.conf["spark.dynamicAllocation.maxExecutors"] == "5"


def test_03_dynamic_allocation_that_is_off_sets_nothing() -> None:
    app = kubeflow("{sparkConf: {spark.dynamicAllocation.enabled: 'true'}, dynamicAllocation: {enabled: false}}")
    assert app.conf == {"spark.dynamicAllocation.enabled": "true"}


@pytest.mark.parametrize(
    ("spec", "key", "value"),
    [
        ("{memoryOverheadFactor: '0.4'}", "spark.kubernetes.memoryOverheadFactor", "0.4"),
        ("{executor: {javaOptions: -XX:+UseG1GC}}", "spark.executor.extraJavaOptions", "-XX:+UseG1GC"),
        ("{executor: {memoryOverhead: 2g}}", "spark.executor.memoryOverhead", "2g"),
        ("{executor: {coreLimit: 1200m}}", "spark.kubernetes.executor.limit.cores", "1200m"),
        ("{executor: {annotations: {a/b: c}}}", "spark.kubernetes.executor.annotation.a/b", "c"),
        ("{deps: {jars: [a.jar, b.jar]}}", "spark.jars", "a.jar,b.jar"),
        ("{hadoopConf: {fs.s3a.x: y}}", "spark.hadoop.fs.s3a.x", "y"),
        ("{nodeSelector: {pool: spark}}", "spark.kubernetes.node.selector.pool", "spark"),
    ],
)
def test_03_fields_of_kubeflow_are_settings(spec: str, key: str, value: str) -> None:
    assert kubeflow(spec).conf[key] == value


def test_04_labels_of_the_resource_reach_the_driver_and_the_executors() -> None:
    found = findings(case("04-kubeflow-metadata-labels/application.yaml"))
    assert "TopologyLabelMissing" not in found
    assert "SelectorMatchesDriver" in found


def test_04_labels_of_kueue_reach_neither() -> None:
    app = kubeflow("{}", "name: a, labels: {kueue.x-k8s.io/queue-name: q, team: t}")
    assert (app.executor_labels, app.driver_labels) == ({"team": "t"}, {"team": "t"})


def test_05_findings_and_patches_are_those_of_spark_3_1() -> None:
    app = case("05-spark-version-3.1/application.yaml")
    found = findings(app)
    assert "FailuresNeverExpire" not in found
    assert "spark.kubernetes.executor.terminationGracePeriodSeconds is 120" in found["GracePeriodIgnored"].what
    assert "StorageDecommissionGrace" in found
    assert "connectionCreationTimeout" not in patch(found.values(), {app.source: app})


@pytest.mark.parametrize(
    ("options", "version"),
    [
        ("--conf spark.kubernetes.container.image=apache/spark:3.5.1-scala2.12-java17", "3.5"),
        ("--conf spark.kubernetes.container.image=x/spark-py:v2.4.3-v2", "2.4"),
        ("--conf spark.kubernetes.container.image=x/spark:spark-3.0.0-hadoop-2.9-k8s", "3.0"),
        ("--conf spark.kubernetes.container.image=x/app:1.2.3", "4.3"),
        ("--conf spark.kubernetes.container.image=h:5000/x/pyspark:3.4.2@sha256:0ab", "3.4"),
        ("--conf spark.kubernetes.container.image=x/notebook:spark-3.5.1", "3.5"),
        ("--conf spark.kubernetes.container.image=x/clicks-spark-job:3.2.0", "4.3"),
        ("--conf spark.kubernetes.container.image=x/spark-clicks:2.4.1", "4.3"),
        ("--conf spark.kubernetes.container.image=x/spark:3.9.0", "4.3"),
        ("--conf spark.kubernetes.container.image=x/spark:2.1.0", "4.3"),
        (
            "--conf spark.kubernetes.container.image=x/spark:3.2.0 --packages org.apache.spark:spark-avro_2.12:3.5.1",
            "3.5",
        ),
        ("--packages org.apache.spark:spark-sql-kafka-0-10_2.12:3.3.2", "3.3"),
    ],
)
def test_05_images_and_packages_tell_the_version(options: str, version: str) -> None:
    assert str(script(f"spark-submit {options} x.py").spark) == version


def test_monitoring_without_prometheus_has_no_effect() -> None:
    app = kubeflow("{monitoring: {exposeDriverMetrics: true, metricsProperties: 'a=b', metricsPropertiesFile: /f}}")
    assert passed(app) == ["spec.monitoring, which has no effect without prometheus"]
    assert not any(key.startswith("spark.metrics") for key in app.conf)


def test_05_before_3_1_an_executor_cant_leave_gracefully() -> None:
    finding = findings(kubeflow("{sparkVersion: 3.0.3}"))["DecommissionOff"]
    assert "can't leave gracefully" in finding.what
    assert finding.settings == {}


def test_06_an_application_in_one_pod_has_no_executors() -> None:
    assert findings(case("06-apache-one-pod/application.yaml")) == {}
    assert findings(script("spark-submit --master 'local[*]' x.py")) == {}


@pytest.mark.parametrize(
    "setting",
    [
        "spark.shuffle.manager=org.apache.spark.shuffle.RssShuffleManager",
        "spark.shuffle.manager=org.apache.spark.shuffle.gluten.celeborn.CelebornShuffleManager",
        "spark.shuffle.manager=org.apache.spark.shuffle.sort.S3ShuffleManager",
        "spark.shuffle.sort.io.plugin.class=com.amazonaws.spark.shuffle.io.cloud.ChopperPlugin",
        "spark.shuffle.sort.io.plugin.class=org.apache.spark.shuffle.S3ShuffleDataIO",
    ],
)
def test_07_a_remote_shuffle_service_is_named(setting: str) -> None:
    found = findings(script(f"spark-submit --conf {setting} --conf spark.storage.decommission.enabled=true x.py"))
    assert "RemoteShuffle" in found
    assert not {"StorageDecommissionGrace", "DepartedExecutorFetches"} & set(found)


def test_07_celeborn_is_named() -> None:
    found = findings(case("07-celeborn/application.yaml"))
    assert list(found) == ["RemoteShuffle"]
    assert "Celeborn" in found["RemoteShuffle"].what


def test_08_the_grace_period_of_a_template_counts_before_spark_4_1() -> None:
    app = case("08-apache-template-grace/application.yaml")
    assert findings(app)["GracePeriodTooShort"].severity == "error"
    text = (FIELD / "08-apache-template-grace/application.yaml").read_text(encoding="utf-8").replace("4.0.1", "4.1.0")
    assert "GracePeriodTooShort" not in findings(from_documents(text, "a")[0])


@pytest.mark.parametrize(
    "spec",
    [
        "{batchScheduler: yunikorn}",
        "{executor: {schedulerName: my-scheduler}}",
        "{executor: {template: {spec: {schedulerName: volcano}}}}",
        "{sparkConf: {spark.kubernetes.scheduler.name: volcano}}",
        "{sparkConf: {spark.kubernetes.executor.scheduler.name: volcano}}",
    ],
)
def test_10_another_scheduler_is_an_error(spec: str) -> None:
    assert findings(kubeflow(spec))["ForeignScheduler"].severity == "error"


def test_10_a_scheduler_that_a_policy_of_the_same_file_names_is_placed_within_limits() -> None:
    policy = (
        "apiVersion: ballast.dev/v1alpha1\nkind: BalancingPolicy\nmetadata: {name: p}\n"
        "spec: {nodeSelector: {}, placement: {schedulerNames: [yunikorn]}}\n"
    )
    application = kubeflow_text("{executor: {schedulerName: yunikorn}}")
    found = findings(from_documents(f"{policy}---\n{application}", "a.yaml")[0])
    assert "ForeignScheduler" not in found
    assert "the racks and nodes that Ballast prefers have no effect" in found["SchedulerLimits"].what


@pytest.mark.parametrize(
    ("spec", "what"),
    [
        ("{batchScheduler: volcano}", "spec.batchScheduler is volcano"),
        (
            "{executor: {annotations: {yunikorn.apache.org/task-group-name: workers}}}",
            "Its executors have the annotation yunikorn.apache.org/task-group-name: workers.",
        ),
        (
            '{driver: {annotations: {yunikorn.apache.org/task-groups: \'[{"name": "workers"}]\'}}}',
            "Its driver has the annotation yunikorn.apache.org/task-groups.",
        ),
        (
            "{executor: {template: {metadata: {annotations: {scheduling.k8s.io/group-name: clicks}}, spec: {}}}}",
            "Its executors have the annotation scheduling.k8s.io/group-name: clicks.",
        ),
        (
            "{executor: {labels: {scheduling.x-k8s.io/pod-group: clicks}}}",
            "Its executors have the label scheduling.x-k8s.io/pod-group: clicks.",
        ),
        (
            "{sparkConf: {spark.kubernetes.executor.pod.featureSteps: a.b.VolcanoFeatureStep}}",
            "VolcanoFeatureStep, which makes a pod group",
        ),
    ],
)
def test_10_a_gang_is_an_error(spec: str, what: str) -> None:
    found = findings(kubeflow(spec))["Gang"]
    assert found.severity == "error"
    assert what in found.what


def test_10_volcano_is_an_error() -> None:
    assert (
        "spec.batchScheduler is volcano" in findings(case("10-batch-scheduler/volcano.yaml"))["ForeignScheduler"].what
    )


def test_11_all_that_moves_need_is_checked_and_jmx_names_are_not_read() -> None:
    found = findings(case("11-jmx-exporter/application.yaml"))
    wanted = {"DecommissionOff", "StateMetricsOff", "MetricsNotExposed", "JmxMetricsUnread", "MetricsNamespaceSet"}
    assert wanted <= set(found)


@pytest.mark.parametrize(("version", "off"), [("3.5.7", True), ("4.0.1", False)])
def test_11_spark_4_exposes_executors_by_default(version: str, off: bool) -> None:
    app = kubeflow(f"{{sparkVersion: {version}, executor: {{labels: {{ballast.dev/workload: Streaming}}}}}}")
    assert ("ExecutorMetricsOff" in findings(app)) is off


def test_12_a_spark_connect_server_is_read() -> None:
    app = case("12-spark-connect/connect.yaml")
    assert (app.source, app.conf["spark.executor.instances"]) == (
        "12-spark-connect/connect.yaml: SparkConnect notebooks",
        "2",
    )
    assert app.client_mode


def test_13_a_list_of_kubectl_is_read() -> None:
    assert [each.source.rpartition(" ")[2] for each in cases("13-kubectl-list/list.yaml")] == ["a", "b"]


def test_34_stackables_resource_is_read_by_its_own_fields() -> None:
    app = case("34-stackable/application.yaml")
    assert app.executor_labels == {"ballast.dev/topology": "tables"}
    assert (app.conf["spark.executor.instances"], app.executor.grace_seconds, str(app.spark)) == ("12", 120.0, "3.5")
    assert set(findings(app)) == {"FailuresNeverExpire", "ClientRackMissing", "SizeUnknown"}


def test_34_what_stackables_operator_sets_itself_is_neither_missing_nor_written() -> None:
    app = case("stackable-streaming/application.yaml")
    assert not {"StateMetricsOff", "MetricsNotExposed", "ExecutorMetricsOff"} & set(findings(app))
    assert (app.conf["spark.executor.memory"], app.conf["spark.executor.cores"]) == ("2925m", "2")
    assert "spark.executor.memory" not in app.set_by_operator
    assert passed(app) == []


def test_34_small_limits_of_stackables_operator_are_told_and_are_no_finding() -> None:
    app = case("34-stackable/application.yaml")
    assert "SerialCollector" not in findings(app)
    assert serial_by_default(app) == "spark.kubernetes.executor.limit.cores is 1"


def test_34_a_connect_server_of_stackables_operator_is_refused_by_name() -> None:
    with pytest.raises(InvalidField, match="a SparkConnectServer of that operator is not read"):
        case("stackable-streaming/connect.yaml")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("history-server/application.yaml", "HistoryServer"),
        ("history-server/no-instances.sh", "spark.executor.instances=0"),
    ],
)
def test_an_application_without_executors_has_no_findings_about_them(name: str, why: str) -> None:
    app = case(name)
    assert (runs_alone(app), findings(app)) == (why, {})


def test_no_instances_with_dynamic_allocation_are_executors_to_come() -> None:
    conf = "--conf spark.executor.instances=0 --conf spark.dynamicAllocation.enabled=true"
    assert not runs_alone(script(f"spark-submit {conf} x.py"))


def test_a_resource_without_its_spec_is_refused_and_not_taken_for_defaults() -> None:
    with pytest.raises(InvalidField, match=r"SparkApplication words: .*no spec"):
        case("history-server/no-spec.yaml")


def test_real_time_is_known_by_the_code_of_the_application_and_not_by_its_comments(tmp_path: Path) -> None:
    for source, name in (("submit.sh", "submit.sh"), ("alerts.txt", "alerts.py")):
        shutil.copy(FIELD / "real-time" / source, tmp_path / name)
    ended = run("doctor", "--spark-submit", str(tmp_path / "submit.sh"), "-o", "json")
    found = {each["id"]: each for each in json.loads(ended.out)["findings"]}
    assert found["RealTimeMoved"]["what"].startswith("Line 6 of alerts.py asks for real-time mode")


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ('q.trigger(realTime="5 minutes")', 1),
        ('val t =\n  Trigger.RealTime("5 minutes")', 2),
        ('q.trigger(\n    # by argument\n    realTime="5 minutes",\n)', 3),
        ("q.trigger(processingTime=None, realTime=str(minutes()))", 1),
        ("// Trigger.RealTime is for later", None),
        ("realTime = args.mode == 'rt'", None),
        ("def f(realTime=False): pass", None),
        ("q.trigger(realTime=False)", None),
        ("q.trigger(realTime = None)", None),
        ('q.trigger(availableNow=True)\nf(realTime="5 minutes")', None),
        ("if realTime == 5: pass", None),
    ],
)
def test_real_time_is_asked_for_in_python_scala_and_java(code: str, line: int | None) -> None:
    assert asks_for_real_time(code) == line


def test_spark_s_default_memory_is_told_next_to_what_was_read() -> None:
    app = script("spark-submit --conf spark.a=1 x.py")
    assert serial_by_default(app) == "An executor's memory limit is 1408 MiB"
    assert "SerialCollector" not in findings(app)
    assert serial_by_default(script("spark-submit --conf spark.a=1 $MORE x.py")) == ""
    assert serial_by_default(script("spark-submit --executor-memory 4g x.py")) == ""


@pytest.mark.parametrize(
    ("options", "java_8"),
    [
        ("--conf spark.kubernetes.container.image=h/app:1.2-jdk8 --executor-memory 4g", True),
        ("--conf spark.kubernetes.container.image=h/spark:2.4.8 --executor-memory 4g", True),
        ("--conf spark.kubernetes.container.image=apache/spark:3.5.1-scala2.12-java11 --executor-memory 4g", False),
        ("--conf spark.kubernetes.container.image=h/app:1.2-jdk8 --executor-memory 1g", False),
    ],
)
def test_java_8_takes_the_parallel_collector(options: str, java_8: bool) -> None:
    assert ("ParallelCollector" in findings(script(f"spark-submit {options} x.py"))) is java_8


def test_34_the_kind_of_an_unknown_operator_is_refused_by_name() -> None:
    with pytest.raises(InvalidField, match=r"spark\.example\.org/v1"):
        from_documents("{apiVersion: spark.example.org/v1, kind: SparkApplication, spec: {}}", "a.yaml")


def test_unknown_fields_are_named() -> None:
    assert passed(kubeflow("{sparkConfigMap: c, executor: {cores: 1, novelty: 2}}")) == [
        "2 fields (spec.sparkConfigMap, spec.executor.novelty)"
    ]


def test_a_scheduled_application_is_patched_where_it_has_its_settings() -> None:
    text = "{apiVersion: sparkoperator.k8s.io/v1beta2, kind: ScheduledSparkApplication, spec: {template: {}}}"
    (app,) = from_documents(text, "a.yaml")
    assert "spec:\n  template:\n    sparkConf:\n" in patch(check([app], Expectations()), {app.source: app})


def test_the_line_of_what_was_read_is_printed_and_in_json() -> None:
    path = str(FIELD / "02-shell-variable/submit.sh")
    printed = run("doctor", "--spark-submit", path).out
    assert f"{path}: read 6 settings; " in printed
    assert "passed over: ${SPARK_SUBMIT_ARGS}" in printed
    (read,) = json.loads(run("doctor", "--spark-submit", path, "-o", "json").out)["read"]
    assert (read["settings"], read["passedOver"][0]) == (6, "${SPARK_SUBMIT_ARGS}")


def test_the_version_can_be_given() -> None:
    path = str(FIELD / "12-spark-connect/connect.yaml")
    assert "Spark 3.0 (--spark-version)" in run("doctor", "-f", path, "--spark-version", "3.0").out
    assert run("doctor", "-f", path, "--spark-version", "new").code == 2


def test_16_brokers_of_strimzi_are_those_with_the_role_of_one_cluster() -> None:
    pods, reported = (str(FIELD / "16-strimzi" / name) for name in ("pods.json", "progress.jsonl"))
    out = run("discover", "-f", pods, "-n", "analytics", "--progress", reported).out
    assert "strimzi.io/broker-role: 'true'" in out
    assert "strimzi.io/cluster: internal-bus" in out


def test_19_progress_is_read_from_the_log_of_a_driver() -> None:
    lines = (FIELD / "19-driver-log-progress/driver.log").read_text(encoding="utf-8").splitlines()
    assert progress.read(lines, "driver.log").rows[:2] == [2000.0, 3000.0]
    assert query_of(lines, "driver.log").topics == ("orders", "returns")


def test_19_progress_is_read_from_structured_logs_and_from_kubectls_timestamps() -> None:
    lines = (FIELD / "19-driver-log-progress/driver.log").read_text(encoding="utf-8").splitlines()
    wanted = progress.read(lines, "driver.log")
    assert progress.read([f"2026-11-20T10:00:00.123Z {line}" for line in lines], "driver.log") == wanted
    messages = "\n".join(lines).split("26/11/20 ")[1:]
    assert progress.read([json.dumps({"ts": "x", "msg": each}) for each in messages], "driver.log") == wanted


def test_a_pod_template_that_is_there_is_read() -> None:
    ended = run("doctor", "--spark-submit", str(FIELD / "pod-template-grace/submit.sh"))
    assert "error: GracePeriodTooShort" in ended.out
    assert "executor.yaml: spec.terminationGracePeriodSeconds is 0 s." in ended.out
    assert "executor.yaml: spec.schedulerName is volcano." in ended.out
    assert "TopologyLabelMissing" not in ended.out
    assert "passed over" not in ended.out


def test_a_pod_template_that_is_not_there_is_passed_over(tmp_path: Path) -> None:
    alone = tmp_path / "submit.sh"
    alone.write_text((FIELD / "pod-template-grace/submit.sh").read_text(encoding="utf-8"), encoding="utf-8")
    ended = run("doctor", "--spark-submit", str(alone))
    assert "passed over: the pod template executor.yaml" in ended.out
    assert "GracePeriodTooShort" not in ended.out


def test_a_setting_wins_over_the_pod_template() -> None:
    settings = ("executor.podTemplateFile=t.yaml", "scheduler.name=default-scheduler", "executor.label.a=1")
    app = script(f"spark-submit {' '.join(f'--conf spark.kubernetes.{each}' for each in settings)} x.py")
    template = {"metadata": {"labels": {"a": "2", "b": "3"}}, "spec": {"schedulerName": "yunikorn"}}
    read = with_pod_template(app, lambda _: template)
    assert (read.executor_labels, read.executor.scheduler) == ({"a": "1", "b": "3"}, "")


@pytest.mark.parametrize("document", [None, [], {}, {"spec": None}, "text"])
def test_what_is_no_pod_template_stays_passed_over(document: object) -> None:
    app = script("spark-submit --conf spark.kubernetes.executor.podTemplateFile=t.yaml x.py")
    assert passed(with_pod_template(app, lambda _: document)) == ["the pod template t.yaml"]
