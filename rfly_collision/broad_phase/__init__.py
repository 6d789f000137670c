# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Broad phase: pairs of overlapping swept boxes."""
