"""A recording as a world to try a policy in: its slots, who comes and goes, its demand, and what is measured."""
