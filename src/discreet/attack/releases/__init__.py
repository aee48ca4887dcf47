"""Attacks against a release of microdata: single out, link, infer, recognize who is in it."""
