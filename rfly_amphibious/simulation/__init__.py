# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Simulation of one vehicle: ticks, pacing, failsafe, events."""
