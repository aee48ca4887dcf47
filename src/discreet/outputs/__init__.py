"""Checking research outputs before they leave the safe setting."""
