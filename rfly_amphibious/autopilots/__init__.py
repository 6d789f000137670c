# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Autopilot firmware in the loop: Betaflight."""
