"""Drop-in replacements of RflySim's SDK: UEMapServe, MATLAB's functions."""
