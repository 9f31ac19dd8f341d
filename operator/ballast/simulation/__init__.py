"""A cluster in discrete time that calls the planner: what a policy would do to a described load."""
