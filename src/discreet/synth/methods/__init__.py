"""How one column is modelled given others: one family of methods a module."""
