"""The ways of reading the same range that are compared, each run in its own process."""
