"""Runtime of the numerical kernels: compilation and threads."""
