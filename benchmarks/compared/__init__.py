"""What the benchmark `peers` is made of."""
