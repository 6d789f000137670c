"""Sensors of RflySim3D: their configuration, their frames, their places on a vehicle."""
