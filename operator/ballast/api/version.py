"""The group and version of Ballast's kinds. Apart from the models, which take a tenth of a second to load."""

from __future__ import annotations

from typing import Final

GROUP: Final = "ballast.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = "ballast.dev/v1alpha1"
