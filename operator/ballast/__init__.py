"""Ballast keeps Spark executors close to what they talk to and the nodes under them level."""
