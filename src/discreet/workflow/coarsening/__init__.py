"""How can columns be told less precisely? Ladders of codings, groups of categories, and keys made coarser."""
