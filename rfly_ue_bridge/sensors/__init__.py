# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Sensors of RflySim3D: their configuration, their frames, their places on a vehicle."""
