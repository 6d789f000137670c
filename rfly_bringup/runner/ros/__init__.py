# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The ROS side of `rfly up`: a check of the ROS domain."""
