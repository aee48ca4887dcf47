"""Neural networks that learn tables: arrays in, arrays out; NumPy and torch, and nothing of data frames.

`discreet.synth.deep_generators` turns columns into these arrays and back. The modules here can be loaded where only
NumPy and torch are installed, on a machine with an accelerator for instance (``bench/deep_on_gpu.py`` does).
"""
