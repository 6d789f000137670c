"""3-D mapping: voxels from point clouds."""
