"""The jobs that the benchmark `sizing` measures and sizes."""
