"""Sequential synthesis: one column at a time, each given those before it."""
