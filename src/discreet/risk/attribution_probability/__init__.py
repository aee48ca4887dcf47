"""Correct attribution probability: how well a sensitive value can be guessed."""
