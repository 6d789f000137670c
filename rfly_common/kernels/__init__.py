"""Compiled loops and threads: how the suite runs its numerical kernels."""
