# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Nodes for ground stations, autopilots, controllers outside and motors, and their topics."""
