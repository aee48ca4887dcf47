"""Mathematics that several rooms share, once."""
