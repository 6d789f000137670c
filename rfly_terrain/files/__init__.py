# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Maps from and to other files: arrays, elevation models, points, and new RflySim map files."""
