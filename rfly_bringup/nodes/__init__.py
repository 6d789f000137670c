"""Node sets: executables, parameters and remappings, described once."""
