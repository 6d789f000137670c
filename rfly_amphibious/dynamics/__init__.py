"""Multibody dynamics: model, kernels, integrators, ground, atmosphere, wind."""
