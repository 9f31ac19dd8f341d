"""Findings as a patch: Spark configuration in the form that it was read in, then shell commands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import yaml

from ballast.doctor.finding import Finding
from ballast.doctor.submission import Form


def patch(findings: Iterable[Finding], forms: Mapping[str, Form]) -> str:
    """One part a subject. `forms`: by subject, of those with Spark configuration. Empty if nothing can be patched."""
    by_subject: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.settings or finding.commands:
            by_subject.setdefault(finding.subject, []).append(finding)
    return "\n\n".join(_part(subject, each, forms.get(subject)) for subject, each in by_subject.items())


def _part(subject: str, findings: list[Finding], form: Form | None) -> str:
    settings = {key: value for finding in findings for key, value in finding.settings.items()}
    commands = list(dict.fromkeys(command for finding in findings for command in finding.commands))
    ids = ", ".join(dict.fromkeys(finding.id for finding in findings))
    return "\n".join([f"# {subject}: {ids}", *_written(settings, form), *commands])


def _written(settings: Mapping[str, str], form: Form | None) -> list[str]:
    if not settings:
        return []
    if form is Form.COMMAND:
        return [" \\\n".join(f"  --conf {key}={value}" for key, value in settings.items())]
    if form is Form.SPARK_APPLICATION:
        return [yaml.safe_dump({"spec": {"sparkConf": dict(settings)}}, sort_keys=False).rstrip()]
    return [f"{key} {value}" for key, value in settings.items()]
