"""BinaryOccupancyMap and OccupancyMap, their kernels, files and plots."""
