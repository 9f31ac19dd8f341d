"""The real carrying out of moves (`controller/movers`) on an API server in memory, whose world goes its own way."""
