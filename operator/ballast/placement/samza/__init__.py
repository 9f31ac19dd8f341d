"""Apache Samza's groupers: which executor (task) goes to which process (container), with and without standbys."""
