"""Configuration files: YAML with line numbers, and JSON schema validation in plain words."""
