# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Diagnosis of a running ROS graph and its machine, from a plain snapshot, and its display."""
