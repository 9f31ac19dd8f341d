"""Apache Storm's resource-aware scheduling: executor orders, node order, and the strategies built of them."""
