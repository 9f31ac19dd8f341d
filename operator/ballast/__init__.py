"""Ballast keeps Spark executors close to what they talk to and the nodes under them level."""

__version__ = "0.1.0"
