# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The ROS side of the `rfly` commands: clients of nodes, topics and services."""
