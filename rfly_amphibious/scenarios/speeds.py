# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Speeds along planned paths where a scenario or a node does not set them."""

DRIVE_SPEED = 3.0
"""On the ground, m/s."""

FLY_SPEED = 4.0
"""In the air, m/s."""
