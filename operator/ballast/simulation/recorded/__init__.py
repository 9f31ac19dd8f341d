"""A recording as a world to try a policy in: its slots, arrivals and departures, its demand, and what is measured."""
