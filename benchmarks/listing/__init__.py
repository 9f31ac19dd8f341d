"""What the API server's lists look like, for benchmarks."""
