# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""3-D mapping: voxels from point clouds."""
