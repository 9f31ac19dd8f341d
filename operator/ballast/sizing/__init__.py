"""How large a pipeline should be: parallelism, batch size, pending work, memory and garbage collection."""
