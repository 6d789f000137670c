# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Export of maps to other programs: GeoTIFF, SDF, triangles of the ground for RViz."""
