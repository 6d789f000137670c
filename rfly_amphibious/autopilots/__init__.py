"""Autopilot firmware in the loop: Betaflight."""
