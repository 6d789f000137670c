# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Missions as data: items, files, MAVLink's commands and frames, fences, checks."""
