"""A small world around the move machine: Spark's allocator, the kubelet, the scheduler, an API server, a user."""
