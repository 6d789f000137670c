"""How it moves: model, kernels, integrators, ground, air."""
