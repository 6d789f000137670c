"""Scenario files, runs, logs, pictures, sweeps."""
