# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Reading and writing maps: png + txt, calibration, arrays, elevation models."""
