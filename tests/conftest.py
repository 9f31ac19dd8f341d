"""Settings for all tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# How long an example takes depends on what else the machine does, and says nothing about the property.
settings.register_profile("ballast", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ballast")
