"""Shapes and their files."""
