"""MATLAB's UAV Toolbox by its names."""
