# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Frames, vehicle states, errors and geodesy for all packages; ROS only in `ros/`."""

from rfly_common.imports import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
