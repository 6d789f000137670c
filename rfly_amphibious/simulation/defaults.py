# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Default settings of a simulation, which nodes read without the model's kernels."""

COMMAND_TIMEOUT = 0.2
"""Simulation time after which a command that is not renewed is dropped, s."""
