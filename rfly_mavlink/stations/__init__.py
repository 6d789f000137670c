# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""MAVLink vehicles for ground stations: bytes in, bytes out, no sockets, no clock, no ROS.

Protocols, telemetry and flight logic are here. The commands and frames of MAVLink's missions, which
mission files share, are in `mission.mavlink_items`.
"""
