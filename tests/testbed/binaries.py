"""The real binaries the testbed runs: found, or built once from pinned Go modules into a cache."""

import hashlib
import os
import platform
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.testbed.errors import TestbedError
from tests.testbed.golang import Go, Progress, find_go, locked

TOOLS_FOLDER = Path(__file__).parent / "tools"
ASSETS_VARIABLE = "KUBEBUILDER_ASSETS"
PROGRESS_INTERVAL_SECONDS = 10.0

Version = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Suite:
    """Binaries that are taken together, from one place, since their versions must agree."""

    module: str
    version: str
    packages: Mapping[str, str]
    minimum: Version
    version_flags: tuple[str, ...] = ("--version",)
    stamps: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()

    @property
    def linker_flags(self) -> str:
        return " ".join(["-s -w", *(f"-X {stamp}" for stamp in self.stamps)])

    @property
    def folder(self) -> Path:
        return TOOLS_FOLDER / self.module

    @property
    def key(self) -> str:
        """Names this very build: the module's pins, the flags and the machine's kind."""
        digest = hashlib.sha256()
        for part in ("go.mod", "go.sum"):
            digest.update((self.folder / part).read_bytes())
        tags = [f"tags {','.join(self.tags)}"] if self.tags else []
        digest.update(" ".join([self.linker_flags, str(sorted(self.packages)), platform.machine(), *tags]).encode())
        return f"{self.module}-{self.version}-{digest.hexdigest()[:10]}"


def _kubernetes(*commands: str, minimum: Version, version_flags: tuple[str, ...]) -> Suite:
    base = "k8s.io/component-base/version."
    return Suite(
        module="kubernetes",
        version="v1.37.1",
        packages={command: f"k8s.io/kubernetes/cmd/{command}" for command in commands},
        minimum=minimum,
        version_flags=version_flags,
        stamps=(
            f"{base}gitVersion=v1.37.1",
            f"{base}gitMajor=1",
            f"{base}gitMinor=37",
            f"{base}gitTreeState=clean",
        ),
    )


SUITES = (
    Suite(
        module="etcd",
        version="v3.7.3",
        packages={"etcd": "go.etcd.io/etcd/server/v3"},
        minimum=(3, 5, 13),  # older ones lack the progress notifications that Spark's watch relies on
    ),
    _kubernetes(
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        minimum=(1, 36, 0),  # the first with MutatingAdmissionPolicy in v1
        version_flags=("--version",),
    ),
    _kubernetes("kubectl", minimum=(1, 35, 0), version_flags=("version", "--client")),
    Suite(
        module="kwok",
        version="v0.8.0",
        packages={"kwok": "sigs.k8s.io/kwok/cmd/kwok"},
        minimum=(0, 7, 0),
        stamps=("sigs.k8s.io/kwok/pkg/consts.Version=0.8.0",),
    ),
    Suite(
        module="helm",
        version="v4.3.1",
        packages={"helm": "helm.sh/helm/v4/cmd/helm"},
        minimum=(3, 18, 0),
        version_flags=("version", "--short"),
        stamps=("helm.sh/helm/v4/internal/version.version=v4.3.1",),
    ),
)
EVERYTHING = tuple(name for suite in SUITES for name in suite.packages)
"""What a testbed and its tests need."""
OTHERS = (
    Suite(
        module="kubeconform",
        version="v0.8.0",
        packages={"kubeconform": "github.com/yannh/kubeconform/cmd/kubeconform"},
        minimum=(0, 7, 0),
        version_flags=("-v",),
        stamps=("main.version=v0.8.0",),
    ),
    Suite(
        module="helm3",
        version="v3.22.0",
        packages={"helm3": "helm.sh/helm/v3/cmd/helm"},
        minimum=(3, 18, 0),
        version_flags=("version", "--short"),
        # Without the last four it takes every cluster for Kubernetes 1.20.
        stamps=(
            "helm.sh/helm/v3/internal/version.version=v3.22.0",
            "helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor=1",
            "helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor=37",
            "helm.sh/helm/v3/pkg/lint/rules.k8sVersionMajor=1",
            "helm.sh/helm/v3/pkg/lint/rules.k8sVersionMinor=37",
        ),
    ),
    Suite(
        module="prometheus-operator",
        version="v0.85.0",
        packages={},  # only its definitions
        minimum=(0, 85, 0),
    ),
    Suite(
        module="prometheus",
        version="v0.313.5",
        packages={"prometheus3": "github.com/prometheus/prometheus/cmd/prometheus"},  # without its pages
        minimum=(3, 0, 0),
        stamps=("github.com/prometheus/common/version.Version=3.13.5",),
        tags=("remove_all_sd",),  # the clients of all clouds take most of the time to compile
    ),
    Suite(
        module="descheduler",
        version="v0.36.0",
        packages={"descheduler": "sigs.k8s.io/descheduler/cmd/descheduler"},
        minimum=(0, 36, 0),
        version_flags=("version",),
        stamps=("sigs.k8s.io/descheduler/pkg/version.version=v0.36.0",),
    ),
    Suite(
        module="kustomize-controller",
        version="v1.7.3",
        packages={"kustomize-controller": "github.com/fluxcd/kustomize-controller"},
        minimum=(1, 7, 3),
    ),
    Suite(
        module="source-controller",
        version="v1.8.5",
        packages={},  # only its definitions: the module proxy lacks some of what it needs
        minimum=(1, 8, 5),
    ),
    Suite(
        module="karpenter",
        version="v1.14.1",
        packages={"karpenter": "sigs.k8s.io/karpenter/kwok"},
        minimum=(1, 14, 1),
        stamps=("sigs.k8s.io/karpenter/pkg/operator.Version=1.14.1",),
    ),
    Suite(
        module="kueue",
        version="v0.15.0",
        packages={"kueue": "sigs.k8s.io/kueue/cmd/kueue"},
        minimum=(0, 15, 0),
        stamps=("sigs.k8s.io/kueue/pkg/version.GitVersion=v0.15.0",),
    ),
    Suite(
        module="yunikorn",
        version="v1.8.0",
        packages={"yunikorn": "github.com/apache/yunikorn-k8shim/pkg/cmd/shim"},
        minimum=(1, 8, 0),
    ),
)
"""Built when a test or a benchmark asks for them."""
_ALL = SUITES + OTHERS


def silent(_line: str) -> None:
    """Progress for callers that want none."""


def cache_folder() -> Path:
    """Where binaries are kept between runs: `$XDG_CACHE_HOME/ballast`, by default below the home folder."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "ballast"


def find_binaries(
    names: Iterable[str] = EVERYTHING,
    *,
    progress: Progress = silent,
    cache: Path | None = None,
) -> dict[str, Path]:
    """The path of each named binary: from KUBEBUILDER_ASSETS, PATH, the cache, else built into the cache.

    A place counts only when it holds the whole suite in a sufficient version. Raises TestbedError for an
    unknown name or a failed build.
    """
    wanted = set(names)
    known = [name for suite in _ALL for name in suite.packages]
    unknown = wanted - set(known)
    if unknown:
        raise TestbedError(f"no such binary: {', '.join(sorted(unknown))}; known: {', '.join(known)}")
    found: dict[str, Path] = {}
    for suite in _ALL:
        if wanted & set(suite.packages):
            found |= _find_suite(suite, cache=cache or cache_folder(), progress=progress)
    return {name: path for name, path in found.items() if name in wanted}


def kwok_stages(*, progress: Progress = silent, cache: Path | None = None) -> Path:
    """A file with kwok's own node and pod stages, taken from its pinned module."""
    folders = [f"kustomize/stage/{stage}" for stage in ("node/fast", "node/heartbeat-with-lease", "pod/fast")]
    return _manifests("kwok", "sigs.k8s.io/kwok", folders, title="stages", progress=progress, cache=cache)


def flux_definitions(controller: str, *, progress: Progress = silent, cache: Path | None = None) -> Path:
    """A file with the definitions of one of Flux's controllers, taken from its pinned module."""
    module, folders = f"github.com/fluxcd/{controller}", ["config/crd/bases"]
    return _manifests(controller, module, folders, title="definitions", progress=progress, cache=cache)


def karpenter_definitions(*, progress: Progress = silent, cache: Path | None = None) -> Path:
    """A file with the definitions of Karpenter and of its kwok provider, taken from its pinned module."""
    folders = ["pkg/apis/crds", "kwok/apis/crds"]
    return _manifests(
        "karpenter", "sigs.k8s.io/karpenter", folders, title="definitions", progress=progress, cache=cache
    )


def prometheus_operator_definitions(*, progress: Progress = silent, cache: Path | None = None) -> Path:
    """A file with the definitions of Prometheus Operator, taken from its pinned module."""
    module, folders = "github.com/prometheus-operator/prometheus-operator", ["example/prometheus-operator-crd"]
    return _manifests("prometheus-operator", module, folders, title="definitions", progress=progress, cache=cache)


def kubernetes_openapi(*, progress: Progress = silent, cache: Path | None = None) -> Path:
    """The folder with the OpenAPI documents of Kubernetes, in its pinned module."""
    go = find_go(cache or cache_folder(), progress=progress)
    folder = TOOLS_FOLDER / "kubernetes"
    go.run("mod", "download", "k8s.io/kubernetes", directory=folder)
    source = go.run("list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes", directory=folder).strip()
    return Path(source) / "api" / "openapi-spec"


def kueue_manifests(*, progress: Progress = silent, cache: Path | None = None) -> Path:
    """A file with the definitions and webhooks of Kueue, taken from its pinned module."""
    folders = ["config/components/crd/bases", "config/components/webhook"]
    return _manifests("kueue", "sigs.k8s.io/kueue", folders, title="manifests", progress=progress, cache=cache)


def _manifests(
    name: str, module: str, folders: Iterable[str], *, title: str, progress: Progress, cache: Path | None
) -> Path:
    """A file with all manifests in those folders of the module."""
    cache = cache or cache_folder()
    suite = next(suite for suite in _ALL if suite.module == name)
    target = cache / "bin" / f"{suite.key}-{title}.yaml"
    with locked(target.with_suffix(".lock")):
        if not target.exists():
            go = find_go(cache, progress=progress)
            go.run("mod", "download", module, directory=suite.folder)
            source = Path(go.run("list", "-m", "-f", "{{.Dir}}", module, directory=suite.folder).strip())
            files = [file for folder in folders for file in _manifest_files(source / folder)]
            partial = target.with_suffix(".partial")
            partial.write_text("\n---\n".join(file.read_text() for file in files))
            partial.replace(target)
    return target


def _manifest_files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.glob("*.yaml") if file.name != "kustomization.yaml")


def _find_suite(suite: Suite, *, cache: Path, progress: Progress) -> dict[str, Path]:
    for place in _places(suite):
        outdated = [path for path in place.values() if not _suffices(suite, path)]
        if not outdated:
            return place
        if _are_assets(outdated[0]):
            progress(f"passing over {outdated[0]}: older than {'.'.join(map(str, suite.minimum))}")
    return _cached(suite, cache=cache, progress=progress)


def _places(suite: Suite) -> Iterator[dict[str, Path]]:
    assets = os.environ.get(ASSETS_VARIABLE)
    for search in ([assets] if assets else []) + [os.environ.get("PATH", os.defpath)]:
        found = {name: shutil.which(name, path=search) for name in suite.packages}
        if all(found.values()):
            yield {name: Path(path) for name, path in found.items() if path}


def _are_assets(path: Path) -> bool:
    """Whether it was named on purpose, rather than merely found on PATH."""
    return str(path.parent) == os.environ.get(ASSETS_VARIABLE)


def _suffices(suite: Suite, path: Path) -> bool:
    version = version_of(suite, path)
    return version is not None and version >= suite.minimum


def version_of(suite: Suite, path: Path) -> Version | None:
    """Which version a binary of the suite says it is."""
    done = subprocess.run([str(path), *suite.version_flags], capture_output=True, text=True, check=False)
    return parse_version(done.stdout)


def parse_version(text: str) -> Version | None:
    """The first `X.Y.Z` in what a `--version` prints."""
    found = re.search(r"(\d+)\.(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def _cached(suite: Suite, *, cache: Path, progress: Progress) -> dict[str, Path]:
    folder = cache / "bin" / suite.key
    paths = {name: folder / name for name in suite.packages}
    if not folder.exists():
        with locked(cache / "bin" / f"{suite.module}.lock"):
            if not folder.exists():
                _build(suite, folder=folder, cache=cache, progress=progress)
    return paths


def _build(suite: Suite, *, folder: Path, cache: Path, progress: Progress) -> None:
    go = find_go(cache, progress=progress)
    title = f"{', '.join(suite.packages)} ({suite.module} {suite.version})"
    progress(f"fetching the modules of {title}")
    packages = list(suite.packages.values())
    total = len(go.run("list", "-deps", *packages, directory=suite.folder).splitlines())
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".build-") as scratch:
        finished = Path(scratch) / suite.key
        for name, package in suite.packages.items():
            tagged = ["-tags", ",".join(suite.tags)] if suite.tags else []
            flags = ["-v", "-trimpath", *tagged, "-ldflags", suite.linker_flags, "-o", str(finished / name)]
            _compile(go, [*flags, package], title=name, total=total, suite=suite, progress=progress)
        finished.rename(folder)


def _compile(go: Go, arguments: list[str], *, title: str, total: int, suite: Suite, progress: Progress) -> None:
    command = ["nice", str(go.command), "build", *arguments]
    started, said = time.monotonic(), 0.0
    lines: list[str] = []
    with subprocess.Popen(command, cwd=suite.folder, env=go.environment, stderr=subprocess.PIPE, text=True) as build:
        for line in build.stderr or ():
            lines.append(line.rstrip())
            elapsed = time.monotonic() - started
            if elapsed - said >= PROGRESS_INTERVAL_SECONDS:
                said = elapsed
                progress(f"building {title}: {len(lines)} of at most {total} packages, {elapsed:.0f} s")
    if build.returncode:
        tail = "\n".join(lines[-15:])
        raise TestbedError(f"building {title} failed (go {' '.join(arguments)} in {suite.folder}):\n{tail}")
    progress(f"built {title} in {time.monotonic() - started:.0f} s")
