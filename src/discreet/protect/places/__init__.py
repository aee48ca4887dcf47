"""Places: points, distances and maps."""
