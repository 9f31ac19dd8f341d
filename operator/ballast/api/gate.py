"""GateSwitch: whether, and where, new executors are gated until they are placed."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from ballast.api.meta import Model, Resource, StatusModel, nested
from ballast.api.names import DnsLabel, ObjectName, Word
from ballast.api.rule import ATOMIC
from ballast.api.version import API_VERSION


class GateSpec(Model):
    """Whether, and where, new executors are gated. Read by the admission policy: every field is always there."""

    gating: bool = False
    """Whether any executor is gated at all. On while an operator leads, off when none does."""
    all_namespaces: bool = False
    """Whether executors of every namespace are gated, whatever namespaces says."""
    # Atomic: with a set, server-side apply drops an empty list and keeps items that another manager once wrote.
    namespaces: Annotated[tuple[DnsLabel, ...], Field(max_length=3000, json_schema_extra={"default": []}), ATOMIC] = ()
    """The namespaces whose executors are gated: those where placement is enforced."""
    scheduler_names: Annotated[
        tuple[ObjectName, ...], Field(max_length=100, json_schema_extra={"default": ["default-scheduler"]}), ATOMIC
    ] = ("default-scheduler",)
    """The schedulers whose executors are gated: those that policies name in placement.schedulerNames."""
    resting_namespaces: Annotated[
        tuple[DnsLabel, ...], Field(max_length=3000, json_schema_extra={"default": []}), ATOMIC
    ] = ()
    """The namespaces whose executors are not gated for now, whatever the other fields say: see status.refusals."""


class Refusal(StatusModel):
    """The API server refused to release executors of a namespace, so they are not gated there for a while."""

    namespace: DnsLabel
    """The executors' namespace."""
    message: Annotated[str, Field(max_length=300)] = ""
    """What the API server answered, such as the name of a webhook."""
    since: datetime
    """Since when they are not gated."""
    until: datetime
    """When they are gated again. The time doubles, up to an hour, if releases are refused then, too."""


class GateStatus(StatusModel):
    """The operator that writes the switch."""

    leader: Word = ""
    """The operator's replica that set it last, or what switched it off."""
    heartbeat_time: datetime | None = None
    """When it was last written."""
    reason: Word = ""
    """Why it stands as it does: Leading, Stopped, LeaseStale, Uninstalled, or AnotherRelease, which leads."""
    refusals: Annotated[tuple[Refusal, ...], Field(max_length=3000), ATOMIC] = ()
    """Where the API server refused to release executors. An entry is kept for an hour after its end."""


class GateSwitch(Resource):
    """The switch that turns the gating of executors on and off. Written by Ballast alone; each release has one."""

    api_version: Literal["ballast.dev/v1alpha1"] = API_VERSION
    kind: Literal["GateSwitch"] = "GateSwitch"
    spec: GateSpec = nested(GateSpec)
    """Whether, and where, new executors are gated."""
    status: GateStatus = Field(default_factory=GateStatus)
    """The operator that writes the switch."""
