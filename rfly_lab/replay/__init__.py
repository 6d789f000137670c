# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Replay: the recorded sensors of any ROS 2 robot, through the estimator and the model."""
