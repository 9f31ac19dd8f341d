"""`ballast doctor`: what to change in a cluster, or in an application before it runs, and why."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from ballast.cli.access import ANYHOW, Access, reads_cluster
from ballast.cli.main import end
from ballast.cli.output import AS_TEXT, Output, TextOption, show, write
from ballast.cli.source import SYSTEM_NAMESPACE, PrometheusOption, SystemOption
from ballast.errors import BallastError, InvalidField
from ballast.files import documents, text_of

if TYPE_CHECKING:
    from ballast.doctor.catalog import Finding
    from ballast.doctor.submission import Submission

EXAMPLES = (
    "kubectl ballast doctor",
    "ballast doctor --conf spark-defaults.conf",
    "ballast doctor --spark-submit 'spark-submit --conf spark.decommission.enabled=true job.py'",
    "ballast doctor -f application.yaml --fix",
    "kubectl ballast doctor -p streaming",
    "kubectl ballast doctor --topology analytics/clickstream",
    "kubectl ballast doctor --pod analytics/ingest-exec-1",
    "ballast doctor --limits limits.txt",
)


_EXEC_SECONDS = 60.0
_MOST_BYTES = 64 << 10
"""Of what the command in a pod prints: it is some two kilobytes."""


@reads_cluster
def doctor(
    conf: Annotated[
        str | None, typer.Option("--conf", metavar="FILE", help="A spark-defaults.conf; - reads standard input.")
    ] = None,
    spark_submit: Annotated[
        str | None, typer.Option("--spark-submit", metavar="COMMAND|FILE", help="A command line, or a file with one.")
    ] = None,
    filename: Annotated[
        str | None,
        typer.Option(
            "--filename", "-f", metavar="FILE", help="SparkApplications or SparkConnects; - reads standard input."
        ),
    ] = None,
    spark_version: Annotated[
        str | None,
        typer.Option("--spark-version", metavar="X.Y", help="Spark's version. Default: what the file tells, or 4.3."),
    ] = None,
    limits: Annotated[
        str | None,
        typer.Option(
            "--limits",
            metavar="FILE",
            help="What the kernel allows a pod, printed as `ballast docs doctor` says; - reads standard input.",
        ),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option("--policy", "-p", metavar="NAME", help="Check this policy's pool and namespaces alone."),
    ] = None,
    topology: Annotated[
        str | None,
        typer.Option("--topology", metavar="NAMESPACE/NAME", help="Check what concerns this SparkTopology alone."),
    ] = None,
    pod: Annotated[
        str | None,
        typer.Option("--pod", metavar="NAMESPACE/NAME", help="Check what the kernel allows this pod, by kubectl exec."),
    ] = None,
    prometheus: PrometheusOption = None,
    system_namespace: SystemOption = SYSTEM_NAMESPACE,
    fix: Annotated[bool, typer.Option("--fix", help="Print the patch only. Nothing is applied.")] = False,
    output: TextOption = AS_TEXT,
    access: Access = ANYHOW,
) -> None:
    """Propose what to change and why, with the measured consequence. Nothing is applied.

    With --conf, --spark-submit or -f it checks an application before it runs, with --limits what the kernel allows a
    pod, and asks no server. With --pod it reads those limits in the pod. Otherwise it checks the cluster: it reads, and
    creates one pod a namespace with the API server's dry run.

    Exit code 0: no error and no warning. 1: at least one. 2: wrong usage, or what is to be checked can't be read.
    """
    try:
        submissions = _in_version(_submissions(conf, spark_submit, filename), spark_version)
        findings = [*_findings(submissions), *_of_limits(limits), *_of_pod(access, pod)]
        part = {"policy": policy, "topology": topology}
        given = [f"--{name}" for name, value in part.items() if value is not None]
        if not submissions and limits is None and pod is None:
            findings = _of_cluster(access, system_namespace=system_namespace, prometheus=prometheus, **part)
        elif given:
            remedy = "it says which part of a cluster: leave it out, or the files and --pod"
            raise InvalidField(given[0], policy or topology, remedy)
    except BallastError as error:
        end(error, code=2)
    _print(findings, submissions, output, fix=fix)
    if any(finding.severity != "info" for finding in findings):
        raise typer.Exit(1)


def _submissions(conf: str | None, command: str | None, filename: str | None) -> list[Submission]:
    """Raises BallastError for what can't be read."""
    found: list[Submission] = []
    if conf is not None:
        from ballast.doctor.command import from_properties  # noqa: PLC0415 -- as above

        found.append(from_properties(_text("--conf", conf), conf))
    if command is not None:
        from ballast.doctor.command import from_script  # noqa: PLC0415 -- loads a parser of shell scripts

        given = _is_file(command)
        text, source = (_text("--spark-submit", command), command) if given else (command, "spark-submit")
        found += from_script(text, source, _properties_file)
    if filename is not None:
        from ballast.doctor.resources import from_documents  # noqa: PLC0415 -- as above

        found += from_documents(_text("--filename", filename), filename)
    from ballast.doctor.pod_template import with_pod_template  # noqa: PLC0415 -- as above
    from ballast.doctor.real_time import with_code  # noqa: PLC0415 -- as above

    given_files = [Path(name).parent for name in (conf, command, filename) if name and _is_file(name)]
    with_templates = [with_pod_template(each, partial(_pod_template, given_files)) for each in found]
    return [with_code(each, partial(_code, given_files)) for each in with_templates]


def _code(folders: Sequence[Path], name: str) -> str | None:
    """None if it can't be read here: it may be in the image, or in a store of objects."""
    place = next((each for each in _places(folders, name) if _is_file(str(each))), None)
    try:
        return None if place is None else _text("application", str(place))
    except InvalidField:  # a jar, or no text
        return None


def _places(folders: Sequence[Path], name: str) -> Sequence[Path]:
    """Where a file that is named may be: nowhere for a URL of another place."""
    path = name.removeprefix("file://")
    return () if "://" in path else (Path(path), *(folder / path for folder in folders))


def _pod_template(folders: Sequence[Path], name: str) -> object | None:
    """None if it can't be read here, or is none: it may be in the image of the pod that submits.

    `folders`: of the files that were given, in which it may be as well.
    """
    for place in _places(folders, name):
        if _is_file(str(place)):
            found = documents(place, option="spark.kubernetes.executor.podTemplateFile", remedy="name a pod template")
            return found[0] if len(found) == 1 else None
    return None


def _properties_file(name: str) -> Mapping[str, str] | None:
    """None if it can't be read here: it may be in the image of the pod that submits."""
    from ballast.doctor.submission import properties  # noqa: PLC0415 -- unused for --help

    return properties(_text("--properties-file", name)) if _is_file(name) else None


def _in_version(submissions: Sequence[Submission], text: str | None) -> Sequence[Submission]:
    """Raises InvalidField for what is no version of Spark."""
    if text is None:
        return submissions
    from ballast.doctor.spark_version import version_of  # noqa: PLC0415 -- unused for --help

    version = version_of(text, "--spark-version")
    if version is None or not submissions:
        remedy = "write a number such as 3.5" if version is None else "name an application with it"
        raise InvalidField("--spark-version", text, remedy)
    return [replace(each, version=version) for each in submissions]


def _findings(submissions: Sequence[Submission]) -> list[Finding]:
    from ballast.doctor.submission_checks import Expectations, check  # noqa: PLC0415 -- unused for --help

    return check(submissions, Expectations())


def _of_limits(limits: str | None) -> list[Finding]:
    """Raises BallastError for what can't be read."""
    if limits is None:
        return []
    from ballast.doctor.cluster_checks import check_limits, read_limits  # noqa: PLC0415 -- unused for --help

    return check_limits(read_limits(_text("--limits", limits), source=limits))


def _of_pod(access: Access, pod: str | None) -> list[Finding]:
    """Raises BallastError if the pod, or kubectl, can't be asked."""
    if pod is None:
        return []
    from ballast.doctor.cluster_checks import COMMAND, check_limits, read_limits  # noqa: PLC0415 -- unused for --help

    namespace, _, name = pod.partition("/")
    if not namespace or not name or name.startswith("-"):
        raise InvalidField("--pod", pod, "write NAMESPACE/NAME")
    asked = ["kubectl", *access.options, "exec", f"--namespace={namespace}", name, "--", *COMMAND.split()]
    try:
        out, words, code = _run(asked)
    except OSError as error:
        raise InvalidField("--pod", pod, f"kubectl: {error.strerror}; install kubectl") from error
    # head fails as a whole where the pod's kernel hides one of the files, and prints the others.
    if code and not out:
        raise InvalidField("--pod", pod, f"{words.strip()}; name a running pod in which you may exec")
    return check_limits(read_limits(out, source=f"Pod {pod}"))


def _run(command: Sequence[str]) -> tuple[str, str, int]:
    """Its output, its error output and its exit code. The program in the pod is its owner's, and may print for ever."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, start_new_session=True) as process:

        def stop() -> None:
            """Also what it has started: that would keep the pipes open."""
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

        last = threading.Timer(_EXEC_SECONDS, stop)
        last.start()
        try:
            out, words = (stream.read(_MOST_BYTES) if stream else b"" for stream in (process.stdout, process.stderr))
        finally:
            last.cancel()
            stop()
    return out.decode(errors="replace"), words.decode(errors="replace"), process.returncode


def _of_cluster(
    access: Access, *, system_namespace: str, prometheus: str | None, policy: str | None, topology: str | None
) -> list[Finding]:
    """Raises BallastError if the API server can't be reached, or does not have the policy or the topology."""
    from ballast.cli.inspection import inspect  # noqa: PLC0415 -- slow to load, unused for a file
    from ballast.doctor.cluster_checks import check  # noqa: PLC0415 -- as above

    connection = access.connect()
    client = access.client(connection)
    try:
        cluster = inspect(client, server=connection.shown, system_namespace=system_namespace, prometheus=prometheus)
        return check(cluster, policy=policy, topology=topology)
    finally:
        client.close()


def _is_file(command: str) -> bool:
    """A command line may be longer than any file's name."""
    try:
        return Path(command).is_file()
    except OSError:
        return False


def _text(option: str, name: str) -> str:
    return text_of(Path(name), option=option, remedy="name a file that can be read")


def _print(findings: Sequence[Finding], submissions: Sequence[Submission], output: Output, *, fix: bool) -> None:
    if fix:
        from ballast.comment import comment  # noqa: PLC0415 -- unused without --fix
        from ballast.doctor.submission_checks import patch  # noqa: PLC0415 -- as above

        for each in submissions:
            if each.passed:
                typer.echo(comment(_reading(each)))
        text = patch(findings, {each.source: each for each in submissions})
        typer.echo(text or "# no finding that a patch could remove")
    elif output.for_programs:
        write(
            {"findings": [_document(each) for each in findings], "read": [_as_read(each) for each in submissions]},
            output,
        )
    else:
        parts = [part for finding in findings for part in (_paragraph(finding), Text())]
        read = [Text(_reading(each), overflow="fold") for each in submissions]
        show(*parts, *read, Text(_summary(findings)))


def _reading(app: Submission) -> str:
    """What was read and what was passed over, in one line."""
    count = len({*app.conf, *app.unread} - app.set_by_operator)
    version = f"Spark {app.spark} ({app.version.told_by})" if app.version else f"Spark {app.spark} is assumed"
    passed = [each.what for each in app.passed]
    parts = [f"read {count} setting{'' if count == 1 else 's'}", version, *_limits_of(app)]
    if app.set_by_operator:
        parts.append(f"its operator sets {len(app.set_by_operator)} more")
    if passed:
        parts.append(f"passed over: {', '.join(passed)}")
    return f"{app.source}: {'; '.join(parts)}"


def _limits_of(app: Submission) -> list[str]:
    """What could not be checked, and why, and what holds by default."""
    from ballast.doctor.foresight import (  # noqa: PLC0415 -- as above
        TOPOLOGY_LABEL,
        runs_alone,
        serial_by_default,
        workload_of,
    )

    if alone := runs_alone(app):
        return [f"it runs in the driver alone ({alone}), so nothing about executors was checked"]
    told = []
    if workload_of(app) is None and TOPOLOGY_LABEL in app.executor_labels:
        named = app.executor_labels[TOPOLOGY_LABEL]
        told.append(f"what moves need was not checked, because SparkTopology {named} tells the workload")
    if serial := serial_by_default(app):
        told.append(f"{serial} by default, where Java 17 to 25 takes the serial collector")
    return told


def _as_read(app: Submission) -> Mapping[str, Any]:
    return {
        "source": app.source,
        "settings": len({*app.conf, *app.unread} - app.set_by_operator),
        "sparkVersion": str(app.spark),
        "sparkVersionFrom": app.version.told_by if app.version else "assumed",
        "unread": dict(app.unread),
        "passedOver": [each.what for each in app.passed],
        "notChecked": _limits_of(app),
    }


def _document(finding: Finding) -> Mapping[str, Any]:
    return {
        "id": finding.id,
        "severity": finding.severity.value,
        "subject": finding.subject,
        "what": finding.what,
        "why": finding.why,
        "remedy": finding.remedy,
        "docs": finding.anchor,
        "settings": dict(finding.settings),
        "commands": list(finding.commands),
    }


def _paragraph(finding: Finding) -> Text:
    color = {"error": "bold red", "warning": "bold yellow", "info": "bold"}[finding.severity.value]
    head = (f"{finding.severity.value}: {finding.id}", color)
    rest = f"  {finding.subject}\n{finding.what} {finding.why}\n{finding.remedy}\n{finding.anchor}"
    return Text.assemble(head, rest, overflow="fold")


def _summary(findings: Sequence[Finding]) -> str:
    if not findings:
        return "No findings."
    counts = {name: sum(each.severity == name for each in findings) for name in ("error", "warning", "info")}
    return ", ".join(_counted(count, name) for name, count in counts.items() if count)


def _counted(count: int, severity: str) -> str:
    plural = "s" if count > 1 and severity != "info" else ""
    return f"{count} {severity}{plural}"
