"""An autoscaler's part in the benchmark `autoscaler`, and the applications that need its nodes."""
