"""Files of unknown origin: one place for their errors, and limits on their sizes and folders."""
