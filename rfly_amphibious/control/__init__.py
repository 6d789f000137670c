"""Flight and chassis control: laws, modes, mixer, guidance along paths."""
