"""Firmware: Betaflight."""
