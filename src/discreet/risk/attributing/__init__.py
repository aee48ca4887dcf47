"""Correct attribution: how well a sensitive value can be guessed."""
