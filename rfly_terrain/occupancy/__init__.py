"""BinaryOccupancyMap, its kernels, files and plots."""
