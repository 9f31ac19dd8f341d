"""Observe nothing, decide everything: one pure pass from a snapshot to a plan."""
