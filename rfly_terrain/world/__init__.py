"""Objects on a terrain: solids, world files, populated worlds."""
