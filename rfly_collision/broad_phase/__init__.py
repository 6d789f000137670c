"""Who may touch whom."""
