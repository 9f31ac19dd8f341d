"""Parts of the benchmark placement-quality: instances, their cost, bounds."""
