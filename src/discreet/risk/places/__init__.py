"""Places: who can be found by where they are."""
