"""Sampling kernels, and the tables of paths and vehicles that they read."""
