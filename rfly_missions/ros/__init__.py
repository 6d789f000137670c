"""mission_node and mavlink_node, their topics, actions and messages."""
