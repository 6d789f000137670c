"""The compiled sampler, its NumPy form, the tables between."""
