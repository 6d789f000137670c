"""Collision_node, messages."""
