# ruff: noqa: INP001
"""Puts the modules of `ballast.job_files` into the wheel, and nothing else of Ballast."""

import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class JobFiles(BuildHookInterface[Any]):
    """Hatchling calls it for each build."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        del version
        package = Path(self.root).parents[1] / "operator" / "ballast"
        job_files = runpy.run_path(str(package / "job_files.py"))["job_files"]
        build_data["force_include"] = {str(package / each): f"ballast/{each}" for each in job_files(package)}
