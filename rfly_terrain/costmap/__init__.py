# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Cost map of the ground for vehicles: slope, roughness, steps, water and objects."""
