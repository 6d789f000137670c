"""Maps for other programs: GeoTIFF, SDF."""
