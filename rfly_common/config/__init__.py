"""Configuration files: YAML with line numbers, JSON schema validation in plain words."""
