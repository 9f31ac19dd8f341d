"""What the running Spark applications pay for where their executors are, and what placing them would save."""
