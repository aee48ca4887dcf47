"""The foundation: errors, types, cards, parameters, results, seeds and files written whole."""
