"""Reading and writing maps: png + txt, calibration, arrays, elevation models."""
