"""Settings for all tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# How long an example takes depends on what else the machine does, and tells nothing about the property.
UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None)
settings.register_profile("fixed", UNTIMED, derandomize=True)
"""The same examples in every run, so that `make test` gives the same verdict each time."""
settings.register_profile("fresh", UNTIMED, derandomize=False, print_blob=True)
"""Other examples in every run: `make bench BENCH=fuzz`, with a seed that it prints."""
settings.load_profile("fixed")
