# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Terrain larger than memory: heights in files of tiles, which are read when they are needed."""
