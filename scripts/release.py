"""`make release VERSION=…`: make everything that a release consists of in `dist/VERSION`, and publish nothing.

A wheel, a source archive, the chart, one file for `kubectl apply`, a bill of materials, notes and checksums; with
`--image` (root, buildah and debootstrap) the images of the operator as archives, too. The version is the one that
pyproject.toml and the chart state already: nothing here edits a file of the checkout. Needs uv, helm and git on PATH.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
TWINE = "twine==7.0.0"
CYCLONEDX = "cyclonedx-bom==7.5.0"
VERSION = re.compile(r"\d+\.\d+\.\d+(-(alpha|beta|rc)\.\d+)?")


class ReleaseError(Exception):
    """It says what keeps the release from being made, and what to do."""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="release", description="Make everything that a release consists of, and publish nothing."
    )
    parser.add_argument("version", help="as pyproject.toml and the chart state it, such as 0.2.0")
    parser.add_argument("--out", type=Path, help="an empty or new folder (default: dist/VERSION)")
    parser.add_argument(
        "--draft", action="store_true", help="take the notes from Unreleased, and a tree with changes as it is"
    )
    parser.add_argument("--image", action="store_true", help="build the image's archives, too (minutes, as root)")
    given = parser.parse_args(arguments)
    out = given.out or ROOT / "dist" / given.version
    try:
        release(given.version, out, draft=given.draft, image=given.image)
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 0


def release(version: str, out: Path, *, draft: bool, image: bool) -> None:
    """Raises ReleaseError before it writes the first file if version, notes or tree aren't ready."""
    check_version(version)
    notes = notes_of(version, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), draft=draft)
    if not draft:
        check_tree()
    if out.exists() and any(out.iterdir()):
        raise ReleaseError(f"{out} is not empty: delete it, or name another folder with --out")
    out.mkdir(parents=True, exist_ok=True)
    with step("wheel and source archive"):
        run("uv", "build", "--quiet", "--out-dir", str(out), ".")
        (out / ".gitignore").unlink(missing_ok=True)
        run("uv", "tool", "run", "--quiet", "--from", TWINE, "twine", "check", "--strict", *files(out))
    with step("chart"):
        run("helm", "package", "charts/ballast", "--destination", str(out))
    with step("manifests"):
        (out / f"ballast-{version}.yaml").write_text(manifests("manifests/", "crds/"), encoding="utf-8")
        (out / f"ballast-{version}.crds.yaml").write_text(manifests("crds/"), encoding="utf-8")
    with step("bill of materials"):
        bill_of_materials(out / f"ballast-{version}.cdx.json")
    if image:
        with step("images"):
            run("sh", "scripts/image.sh", str(out), version)
    (out / "notes.md").write_text(notes, encoding="utf-8")
    (out / "SHA256SUMS").write_text("".join(f"{digest(path)}  {path.name}\n" for path in _made(out)), encoding="utf-8")
    print(f"release: {out} has {len(_made(out))} files. Nothing was published.")


def check_version(version: str) -> None:
    if not VERSION.fullmatch(version):
        raise ReleaseError(
            f"{version!r} is no version: write MAJOR.MINOR.PATCH, with -alpha.N, -beta.N or -rc.N after it"
        )
    for file, stated in stated_versions().items():
        if stated != version:
            raise ReleaseError(f"{file} states {stated}, and not {version}: change it there, and run make generate")


def stated_versions() -> dict[str, str]:
    """By the place that states one."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    chart = (ROOT / "charts" / "ballast" / "Chart.yaml").read_text(encoding="utf-8")
    found = {"version in pyproject.toml": str(project)}
    for name in ("version", "appVersion"):
        line = re.search(rf'^{name}: "?([^"\n]+)"?$', chart, re.MULTILINE)
        found[f"{name} in charts/ballast/Chart.yaml"] = line.group(1) if line else "nothing"
    return found


def notes_of(version: str, changelog: str, *, draft: bool) -> str:
    """The changelog's section, and how to upgrade."""
    heading = "Unreleased" if draft else version
    section = re.search(rf"^## {re.escape(heading)}(?!\S)[^\n]*\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if section is None or not section.group(1).strip():
        raise ReleaseError(f"CHANGELOG.md has no section '## {heading}' with lines: write what changes for users")
    upgrade = (
        "## Upgrade\n\n"
        f"1. Helm leaves CRDs alone: `kubectl apply --server-side -f ballast-{version}.crds.yaml`\n"
        f"2. `helm upgrade ballast ballast-{version}.tgz --namespace ballast-system`\n\n"
        "`ballast docs upgrading` tells what happens to executors meanwhile, and how to go back.\n"
    )
    return f"# Ballast {version}\n\n{section.group(1).strip()}\n\n{upgrade}"


def check_tree() -> None:
    if changed := run("git", "status", "--porcelain").strip():
        raise ReleaseError(f"the checkout has changes that are not committed:\n{changed}")


def manifests(*folders: str) -> str:
    """What `kubectl apply -k` of the checkout applies from these folders, as one file in the same order."""
    listed = re.findall(r"^  - (\S+)$", (ROOT / "kustomization.yaml").read_text(encoding="utf-8"), re.MULTILINE)
    texts = ((ROOT / name).read_text(encoding="utf-8") for name in listed if name.startswith(folders))
    # A file's own first separator would leave a document without an object.
    return "---\n".join(re.sub(r"\A(#[^\n]*\n)*---\n", "", text) for text in texts)


def bill_of_materials(path: Path) -> None:
    """In CycloneDX's form, of what the operator's image installs (its base's packages are the base's matter)."""
    with tempfile.TemporaryDirectory() as folder:
        installed = Path(folder) / "installed"
        run("sh", "scripts/install.sh", "dependencies", str(installed), "amd64")
        # The tool asks an interpreter for its packages: this one has no others.
        python = Path(folder) / "python"
        python.write_text(f'#!/bin/sh\nPYTHONPATH="{installed}" exec "{sys.executable}" -S "$@"\n', encoding="utf-8")
        python.chmod(0o755)
        options = ("--output-reproducible", "--pyproject", "pyproject.toml", "--of", "JSON", "-o", str(path))
        run("uv", "tool", "run", "--quiet", "--from", CYCLONEDX, "cyclonedx-py", "environment", str(python), *options)


def files(out: Path) -> list[str]:
    return sorted(str(path) for pattern in ("*.whl", "*.tar.gz") for path in out.glob(pattern))


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _made(out: Path) -> list[Path]:
    return sorted(path for path in out.iterdir() if path.name != "SHA256SUMS")


@contextmanager
def step(name: str) -> Iterator[None]:
    started = time.monotonic()
    print(f"release: {name} …", flush=True)
    yield
    print(f"release: {name}: {time.monotonic() - started:.0f} s", flush=True)


def run(*command: str) -> str:
    """What it prints; ReleaseError with its last lines if it fails or is missing."""
    program = shutil.which(command[0])
    if program is None:
        raise ReleaseError(f"{command[0]} is missing: put it on PATH")
    done = subprocess.run(
        [program, *command[1:]],
        cwd=ROOT,
        env=os.environ | {"SOURCE_DATE_EPOCH": "315532800"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise ReleaseError(
            f"{' '.join(command[:3])} failed:\n" + "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        )
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
