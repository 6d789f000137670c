"""Who touches, where, how deep."""
