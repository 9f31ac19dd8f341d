"""Parts of the benchmark adversary: the search, what it draws, and how bad a case is."""
