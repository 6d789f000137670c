# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Narrow phase: contact points, normals, depths and times of impact."""
