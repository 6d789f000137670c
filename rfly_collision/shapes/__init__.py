"""Collision shapes and their files."""
