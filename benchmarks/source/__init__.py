"""The ways of reading the same range that are compared, each run in a process of its own."""
