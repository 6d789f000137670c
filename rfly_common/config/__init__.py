"""Configuration files: YAML with line numbers, and what is wrong with them in words."""
