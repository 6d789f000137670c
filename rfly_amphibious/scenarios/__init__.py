"""Scenarios: files, runs, logs, plots, parameter sweeps."""
