"""Paths over the costs, through the air, mixed."""
