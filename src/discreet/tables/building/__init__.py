"""Building tables: from records or cells, with their dimensions, their sums and the people in them."""
