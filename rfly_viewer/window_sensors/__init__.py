# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Cameras and lidars of our own window, answered as RflySim3D answers."""
