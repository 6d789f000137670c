# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Motion along paths: speed profiles, attitude, wheels on the ground, formations, take-over."""
