"""`rfly up`: supervisor, entry points."""
