"""Scenarios in which moving may cost more than it brings, and what runs in them."""
