"""Sampling kernels: compiled, NumPy form, tables between."""
