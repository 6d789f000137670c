# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Kinematic vehicles that carry out one item at a time: multirotor, fixed wing, car, land-air."""
