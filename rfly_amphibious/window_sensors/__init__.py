"""Cameras and lidars of our own window, answered as RflySim3D answers."""
