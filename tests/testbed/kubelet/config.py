"""The kubelet's configuration file: the contract with whoever starts it (see README.md)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel


class Model(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)


class ApiServer(Model):
    host: str
    port: int
    ca_file: Path | None = None


class SparkImage(Model):
    """Spark's image: its home at /opt/spark, its entrypoint and decom.sh."""

    kind: Literal["spark"]
    env: dict[str, str] = {}
    user: int = 0


class CommandImage(Model):
    """An image whose entrypoint is `command`; the pod's own command replaces it, its args follow it."""

    kind: Literal["command"]
    command: list[str]
    env: dict[str, str] = {}
    user: int = 0


class HostImage(Model):
    """An image without an entrypoint: the pod says itself what to run, of the machine's own programs."""

    kind: Literal["host"]
    env: dict[str, str] = {}
    user: int = 0


class NoiseImage(Model):
    """Burns CPU: args `--cores 0.3`."""

    kind: Literal["noise"]
    env: dict[str, str] = {}
    user: int = 0


Image = Annotated[SparkImage | CommandImage | HostImage | NoiseImage, Field(discriminator="kind")]


class Taint(Model):
    key: str
    value: str | None = None
    effect: str


class NodeConfig(Model):
    name: str
    address: str
    port: int
    metrics_port: int
    labels: dict[str, str] = {}
    taints: list[Taint] = []
    capacity: dict[str, str] = {"cpu": "1", "memory": "4Gi", "pods": "30"}
    cpu_quota_cores: float | None = None
    netns: str | None = None
    """Name of a network namespace (below /run/netns) in which the node and its pods live."""
    network_interface: str | None = None
    """With netns: the interface inside it that carries the node's traffic and gets the pods' addresses."""
    pod_cidr: str | None = None
    """Where pod addresses come from; None: the /24 around the node's own address."""


class KubeletConfig(Model):
    kubeconfig: Path
    instance: str
    state_dir: Path
    cgroup_prefix: str
    api_server: ApiServer
    client_ca_file: Path
    serving_cert: Path
    serving_key: Path
    python_path: list[str] = []
    python: str = sys.executable
    """The interpreter that pods get as `python3`, PYSPARK_PYTHON and so on."""
    shared_paths: list[Path] = []
    """Folders of the machine that every container sees and writes as they are."""
    images: dict[str, Image] = {}
    nodes: list[NodeConfig]
    restart_backoff_seconds: float = 10.0
    volume_refresh_seconds: float = 60.0
    heartbeat_seconds: float = 10.0
    version: str = "v1.37.1"

    @classmethod
    def load(cls, path: Path) -> KubeletConfig:
        return cls.model_validate_json(path.read_text())
