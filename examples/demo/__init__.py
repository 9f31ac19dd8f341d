"""The demonstration: a real streaming job, placed by kube-scheduler and by Ballast, and moved off a hot node."""
