"""Where it believes to be."""
