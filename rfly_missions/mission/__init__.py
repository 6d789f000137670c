"""Missions: items, files, path manager, kinematic vehicles."""
