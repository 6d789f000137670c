# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Sampling kernels, and the tables of paths and vehicles that they read."""
