"""Analysis: what follows from a vehicle's parameters without a simulation."""
