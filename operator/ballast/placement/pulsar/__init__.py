"""Pulsar's placement strategies: which node takes one executor, without regard to what it talks to."""
