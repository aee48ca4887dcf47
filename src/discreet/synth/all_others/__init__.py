"""Order-free regression synthesis: every column from all the others."""
