"""Nodes, topics, messages."""
