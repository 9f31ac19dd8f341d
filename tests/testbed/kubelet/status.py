"""A pod's status, worked out from the states of its containers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Waiting:
    reason: str = "ContainerCreating"
    message: str = ""


@dataclass(frozen=True, slots=True)
class Running:
    started: float


@dataclass(frozen=True, slots=True)
class Terminated:
    exit_code: int
    reason: str
    started: float
    finished: float
    signal: int = 0
    message: str = ""
    container_id: str = ""


State = Waiting | Running | Terminated


@dataclass(frozen=True, slots=True)
class ContainerStatus:
    """What is known of one container. `started`: its startup probe has passed."""

    name: str
    image: str
    state: State = Waiting()
    last: Terminated | None = None
    restarts: int = 0
    ready: bool = False
    started: bool = False
    container_id: str = ""
    is_init: bool = False
    is_sidecar: bool = False

    @property
    def initialized(self) -> bool:
        """An init container that no longer holds up those after it."""
        if self.is_sidecar:
            return self.started
        return isinstance(self.state, Terminated) and self.state.exit_code == 0


def timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def state_json(state: State) -> Json:
    match state:
        case Waiting(reason, message):
            return {"waiting": {"reason": reason} | ({"message": message} if message else {})}
        case Running(started):
            return {"running": {"startedAt": timestamp(started)}}
        case Terminated():
            body: Json = {
                "exitCode": state.exit_code,
                "reason": state.reason,
                "startedAt": timestamp(state.started),
                "finishedAt": timestamp(state.finished),
                "containerID": state.container_id,
            }
            if state.signal:
                body["signal"] = state.signal
            if state.message:
                body["message"] = state.message
            return {"terminated": body}


def container_json(status: ContainerStatus) -> Json:
    return {
        "name": status.name,
        "image": status.image,
        "imageID": status.image,
        "containerID": status.container_id,
        "restartCount": status.restarts,
        "ready": status.ready,
        "started": status.started,
        "state": state_json(status.state),
        "lastState": state_json(status.last) if status.last else {},
    }


def phase(containers: Sequence[ContainerStatus], *, restart_policy: str) -> str:
    """The pod's phase by the kubelet's rules."""
    inits = [c for c in containers if c.is_init]
    mains = [c for c in containers if not c.is_init]
    if not all(c.initialized for c in inits) and all(isinstance(c.state, Waiting) and not c.last for c in mains):
        failed = any(isinstance(c.state, Terminated) and c.state.exit_code for c in inits if not c.is_sidecar)
        return "Failed" if failed and restart_policy == "Never" else "Pending"
    if any(isinstance(c.state, Waiting) and c.last is None for c in mains):
        return "Pending"
    lasting = [*mains, *(c for c in inits if c.is_sidecar)]
    if any(not isinstance(c.state, Terminated) for c in lasting) or restart_policy == "Always":
        return "Running"
    codes = [c.state.exit_code for c in mains if isinstance(c.state, Terminated)]
    if not any(codes):
        return "Succeeded"
    return "Failed" if restart_policy == "Never" else "Running"


@dataclass(frozen=True, slots=True)
class Condition:
    type: str
    holds: bool
    reason: str = ""
    message: str = ""


def conditions(containers: Sequence[ContainerStatus], *, phase_now: str, gates: Iterable[bool]) -> list[Condition]:
    """The kubelet's conditions, in the order in which a pod passes them. `gates`: states of readiness gates."""
    finished = phase_now in {"Succeeded", "Failed"}
    initialized = all(c.initialized for c in containers if c.is_init) or phase_now == "Succeeded"
    unready = [c.name for c in containers if not c.ready and (not c.is_init or c.is_sidecar)]
    reason = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(phase_now, "ContainersNotReady")
    message = f"containers with unready status: [{' '.join(unready)}]" if unready and not finished else ""
    contained = not unready and not finished
    ready = contained and all(gates)
    return [
        Condition("PodReadyToStartContainers", not finished),
        Condition("Initialized", initialized, "" if initialized else "ContainersNotInitialized"),
        Condition("Ready", ready, "" if ready else reason if not contained else "ReadinessGatesNotReady", message),
        Condition("ContainersReady", contained, "" if contained else reason, message),
        Condition("PodScheduled", holds=True),
    ]


def condition_json(condition: Condition, previous: Json | None, now: float) -> Json:
    """The condition as the API wants it; its transition time moves only when its status does."""
    status = "True" if condition.holds else "False"
    same = previous is not None and previous.get("status") == status
    changed = previous.get("lastTransitionTime") if same and previous else None
    return {
        "type": condition.type,
        "status": status,
        "reason": condition.reason or None,
        "message": condition.message or None,
        "lastTransitionTime": changed or timestamp(now),
    }
