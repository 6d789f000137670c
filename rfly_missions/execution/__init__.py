"""Execution of missions: path manager, completion, the runner, and the check before the flight."""
