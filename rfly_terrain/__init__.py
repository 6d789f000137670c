# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Height maps and occupancy maps: files, queries, rays, point clouds, and the terrain node."""

from rfly_common.imports import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
