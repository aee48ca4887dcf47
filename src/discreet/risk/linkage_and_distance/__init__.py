"""Linkage, neighbors and outliers: how close a release keeps to its people."""
