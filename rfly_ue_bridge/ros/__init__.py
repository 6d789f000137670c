"""Ue_bridge_node and its parts."""
