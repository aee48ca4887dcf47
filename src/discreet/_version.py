"""The version, read by the build and shown in every report."""

__version__ = "0.1.0"
