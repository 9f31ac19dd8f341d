"""Ballast and its resources reconciled from a git repository by Flux."""
