"""Fleets: files, states as arrays, run clock, shards, limit checks."""
