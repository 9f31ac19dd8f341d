"""Samza's groupers and standby containers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ballast.errors import InvalidField
from tests.reference.samza.by_locality import by_locality
from tests.reference.samza.by_previous_count import by_previous_count
from tests.reference.samza.dealing import Groups, dealt, first_by_name
from tests.reference.samza.standby import Process, kind, must_be_apart, with_standbys
from tests.vectors.case import Case
from tests.vectors.defects import faithful

Given = Mapping[str, Any]

COUNT_ERRORS = {"IllegalArgumentException": ("executors", "count"), "NullPointerException": ("previous",)}
"""What our error names where Samza throws which exception."""


def listed(groups: Groups) -> Groups:
    return {process: sorted(executors) for process, executors in groups.items()}


def grouped_by_ids(config: Given, given: Given) -> Groups:
    if given["call"] == "group(tasks, processor_ids)":
        everyone = [str(number) for number in range(config["job.container.count"])]
        return dealt(given["tasks"], everyone if given["processor_ids"] is None else given["processor_ids"])
    visiting = given.get("kept_processors_iteration_order")
    if visiting is not None:
        assert sorted(visiting) == first_by_name(given["processor_locality"], len(given["tasks"]))
    return by_locality(given["tasks"], given["processor_locality"], given["task_locality"], visiting=visiting)


@pytest.mark.vectors("samza", "GroupByContainerIds")
def test_by_ids(case: Case) -> None:
    for each in case.rounds:
        if "error" in each["want"]:
            with pytest.raises(InvalidField) as raised:
                grouped_by_ids(case.config, each["given"])
            assert raised.value.field in ("executors", "processes")
        else:
            assert listed(grouped_by_ids(case.config, each["given"])) == each["want"]["containers"]


@pytest.mark.vectors("samza", "GroupByContainerCount")
def test_by_count(case: Case) -> None:
    options = faithful(case.class_name)
    for each in case.rounds:
        given, want = each["given"], each["want"]
        arguments = (given["tasks"], given["container_count"], given["previous_task_to_processor"])
        if "error" in want:
            with pytest.raises(InvalidField) as raised:
                by_previous_count(*arguments, **options)
            assert raised.value.field in COUNT_ERRORS[want["error"]]
        else:
            assert listed(by_previous_count(*arguments, **options)) == want["containers"]


def grouped(config: Given, given: Given) -> Groups:
    if config["grouper"] == "GroupByContainerCount":
        return by_previous_count(given["tasks"], config["container_count"], {})
    return by_locality(given["tasks"], given["processor_locality"], given["task_locality"])


def modes(process: Process) -> list[str]:
    return sorted({"Active" if executor.active else "Standby" for executor in process.executors})


@pytest.mark.vectors("samza", "TaskNameGrouperProxy")
def test_standbys(case: Case) -> None:
    config, want = case.config, case.raw["want"]
    replicas = config["job.standbytasks.replication.factor"] if config["standby_enabled"] else 1
    processes = with_standbys(grouped(config, case.raw["given"]), replicas)
    inside = {name: [executor.name for executor in process.executors] for name, process in processes.items()}
    assert listed(inside) == want["containers"]
    assert {name: modes(process) for name, process in processes.items()} == want["task_modes"]
    wanted_kinds = {
        name: (wanted["is_standby"], wanted["active_container"]) for name, wanted in want["container_kind"].items()
    }
    names_are_clear = not {"hyphen-in-task-names", "hyphen-in-processor-ids"} & case.flags
    for options in [faithful(case.class_name), *([{}] if names_are_clear else [])]:
        assert must_be_apart(processes, **options) == want["must_not_share_host_with"]
        assert {name: kind(process, **options) for name, process in processes.items()} == wanted_kinds
