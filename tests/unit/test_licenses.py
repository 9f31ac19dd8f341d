"""What is installed with Ballast may be given away with it, and the check of that can fail."""

from __future__ import annotations

import pytest

from tests.licenses import fine, main


def test_every_package_that_is_installed_with_ballast_has_a_license_that_goes_with_its_own() -> None:
    assert main() == 0


@pytest.mark.parametrize(
    "words", ["", "GPL-3.0-only", "AGPL-3.0 AND MIT", " GNU General Public License v2 (GPLv2)", "?"]
)
def test_a_package_without_a_license_or_with_one_to_avoid_is_found(words: str) -> None:
    assert not fine(words)
