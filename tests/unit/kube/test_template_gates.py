"""Which applications still create gated executors after Ballast is gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ballast.kube.template_gates import TemplateGates, gated_pods, template_gates
from tests.apiserver import Answer, Asked, scripted
from tests.unit.kube.builders import GATE, driver, executor

JSON = dict[str, Any]
BY_TEMPLATE: JSON = {"fieldsV1": {"f:spec": {"f:schedulingGates": {'k:{"name":"ballast.dev/placement"}': {}}}}}
OTHERS_FIELDS: JSON = {"fieldsV1": {"f:spec": {"f:schedulingGates": {'k:{"name":"other"}': {}}}}}
GATED = "spec: {schedulingGates: [{name: other}, {name: ballast.dev/placement}]}"
NAME = "ballast.dev/placement"
FORBIDDEN = Answer(403, {"reason": "Forbidden", "message": "no"})
NO_NAME = Answer(400, {"reason": "BadRequest", "message": "Name parameter invalid: may not contain '/'"})
MISSING = Answer(404, {"reason": "NotFound", "message": "no"})


def with_template(application: str = "spark-1") -> JSON:
    """A driver whose executors have a pod template; the other volumes are none."""
    volumes = [{"name": "tmp"}, {"name": "pod-template-volume", "configMap": {"name": f"{application}-template"}}]
    return driver(application, volumes=volumes)


def looked(folder: Path, pods: list[JSON], template: Answer) -> TemplateGates:
    def answer(asked: Asked) -> Answer:
        if "/configmaps/" in asked.path:
            return template
        drivers = "spark-role" in asked.path
        wanted = [pod for pod in pods if ("driver" in pod["metadata"]["name"]) is drivers]
        return Answer(body={"items": wanted, "metadata": {}})

    with scripted() as script:
        script.by = answer
        client = script.client(folder)
        try:
            return template_gates(client, gated_pods(client))
        finally:
            client.close()


def holding(text: object) -> Answer:
    return Answer(body={"metadata": {"name": "x"}, "data": {"podspec-configmap-key": text}})


HELD = executor(1, gates=[GATE], managed_fields=[BY_TEMPLATE])


@pytest.mark.parametrize(
    ("pods", "template", "found"),
    [
        pytest.param([with_template()], holding(GATED), TemplateGates(("analytics/spark-1",)), id="in the template"),
        pytest.param([HELD], MISSING, TemplateGates(("analytics/spark-1",)), id="in an executor, in client mode"),
        pytest.param(
            [with_template()], FORBIDDEN, TemplateGates((), ("analytics/spark-1",)), id="a template nobody may read"
        ),
        pytest.param(
            [with_template(), HELD], FORBIDDEN, TemplateGates(("analytics/spark-1",)), id="known without the template"
        ),
        pytest.param([driver()], MISSING, TemplateGates(), id="no template"),
        pytest.param([with_template()], MISSING, TemplateGates(), id="a template that is gone"),
        pytest.param([with_template()], NO_NAME, TemplateGates(), id="a name that no ConfigMap can have"),
        pytest.param([with_template()], holding("spec: {}"), TemplateGates(), id="no gates in the template"),
        pytest.param([with_template()], holding("spec: ["), TemplateGates(), id="no YAML"),
        pytest.param([with_template()], holding("[1]"), TemplateGates(), id="no pod"),
        pytest.param(
            [with_template()],
            holding(f"{GATED}\nx: {'[' * 5000}"),
            TemplateGates(("analytics/spark-1",)),
            id="nested too deeply",
        ),
        pytest.param(
            [with_template()], holding(f"# {NAME}\nspec: !!timestamp x"), TemplateGates(), id="a value of no type"
        ),
        pytest.param(
            [with_template()], holding(f"# {NAME}\nspec: 1{':1' * 300}.5"), TemplateGates(), id="a number to base 60"
        ),
        *(
            pytest.param(
                [with_template()],
                holding(GATED.replace(NAME, f'"{written}"')),
                TemplateGates(("analytics/spark-1",)),
                id=f"written as {written}",
            )
            for written in (
                r"ballast.dev\/placement",
                r"ballast.dev\x2fplacement",
                r"ballast\u002edev\U0000002fplacement",
            )
        ),
        pytest.param([with_template()], holding(None), TemplateGates(), id="no text"),
        pytest.param(
            [executor(1, gates=[GATE], managed_fields=[OTHERS_FIELDS])], MISSING, TemplateGates(), id="by admission"
        ),
        pytest.param(
            [executor(1, gates=[{"name": "other"}], managed_fields=[BY_TEMPLATE])],
            MISSING,
            TemplateGates(),
            id="released",
        ),
        pytest.param(
            [executor(1, gates=[GATE], managed_fields=[BY_TEMPLATE], leaving=True)],
            MISSING,
            TemplateGates(),
            id="leaving",
        ),
    ],
)
def test_an_application_is_named_if_its_executors_come_with_the_gate(
    tmp_path: Path, pods: list[JSON], template: Answer, found: TemplateGates
) -> None:
    assert looked(tmp_path, pods, template) == found


def test_a_template_that_many_drivers_name_is_read_once(tmp_path: Path) -> None:
    """500 pods of one user that named a ConfigMap of a megabyte took half a gigabyte of the command's memory."""
    pods = [driver(f"spark-{number}", volumes=with_template()["spec"]["volumes"]) for number in range(20)]
    asked: list[str] = []

    with scripted() as script:

        def answer(request: Asked) -> Answer:
            if "/configmaps/" in request.path:
                asked.append(request.path)
                return holding(GATED)
            return Answer(body={"items": pods if "spark-role" in request.path else [], "metadata": {}})

        script.by = answer
        client = script.client(tmp_path)
        found = template_gates(client, [])
        client.close()
    assert len(found.found) == len(pods)
    assert len(asked) == 1


def test_people_are_told_of_both_kinds_and_of_nothing_else() -> None:
    assert TemplateGates().warnings() == []
    found, unread = TemplateGates(("a/one", "a/two"), ("b/three",)).warnings()
    assert found.endswith("a/one, a/two")
    assert unread.endswith("b/three")
