# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The ROS side of `make demo`: a node that measures from outside."""
