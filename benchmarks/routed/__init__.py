"""The parts of the routing benchmarks."""
