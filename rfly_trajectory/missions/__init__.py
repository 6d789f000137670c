"""Mission items and files, path manager, vehicles that follow them."""
