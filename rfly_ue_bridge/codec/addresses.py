# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""RflySim3D's addresses and ports on the network.

Standard library only: the command line reads them before anything else is loaded.
"""

from __future__ import annotations

DEFAULT_HOST = "127.0.0.1"
WINDOW_PORT = 20010
"""UDP port of RflySim3D's window 0; window k listens on WINDOW_PORT + k."""
FEEDBACK_PORT = 20006
"""UDP port of a host on which it hears RflySim3D and CopterSim."""
MULTICAST_GROUP = "224.0.0.10"
"""Multicast group to which they send the same, and on which RflySim3D hears commands."""
LAN_GROUP = (MULTICAST_GROUP, 20009)
"""Group and port on which every RflySim3D of a network listens for commands, and for nothing else.
"""

SENSOR_PORT = 9999
"""UDP port of a host for sensor 0's data; sensor k usually has SENSOR_PORT + k."""
TIME_PORT = 20005
"""UDP port of a host on which it hears CopterSim's heart-beat with the start of its clock."""
COPTER_SIM_PORT = 30100
"""UDP port on which CopterSim takes requests for vehicle 1; vehicle k's is 2 (k - 1) higher."""
OFFBOARD_PORT = 20100
"""UDP port on which CopterSim takes commands for vehicle 1; vehicle k's is 2 (k - 1) higher."""
STATE_PORT = 20101
"""UDP port of a host for vehicle 1's estimated state; vehicle k's is 2 (k - 1) higher."""
TRUTH_PORT = 30101
"""UDP port of a host for vehicle 1's true state; vehicle k's is 2 (k - 1) higher."""
IMU_PORT = 31000
"""UDP port of a host for vehicle 1's IMU; vehicle k usually has IMU_PORT + k - 1."""

MAX_UDP_PAYLOAD = 65507
"""Largest payload of a UDP datagram over IPv4, bytes."""
