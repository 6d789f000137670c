"""Missions as data: items, files, MAVLink's commands and frames, fences, checks."""
