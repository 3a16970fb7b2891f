"""Numbers in, intervals out: pure functions, and the only importers of numpy and scipy."""
