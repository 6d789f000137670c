"""Simulation of one vehicle: ticks, pacing, failsafe, events."""
