"""BinaryOccupancyMap, its kernels, files and pictures."""
