"""Flight and chassis controllers, modes, mixer."""
