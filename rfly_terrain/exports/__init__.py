"""Export of maps to other programs: GeoTIFF, SDF."""
