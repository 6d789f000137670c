"""RflySim3D's places on the network. Standard library only: the command line reads them before
anything is loaded.
"""

from __future__ import annotations

DEFAULT_HOST = "127.0.0.1"
WINDOW_PORT = 20010
"""UDP port of RflySim3D's window 0; window k listens on WINDOW_PORT + k"""
FEEDBACK_PORT = 20006
"""UDP port of a host to which RflySim3D and CopterSim send what they say"""
MULTICAST_GROUP = "224.0.0.10"
"""to which they say the same, and where RflySim3D hears commands for a whole network"""
LAN_GROUP = (MULTICAST_GROUP, 20009)
"""every RflySim3D of a network listens here for commands, and for nothing else"""

MAX_UDP_PAYLOAD = 65507
"""Largest payload of a UDP datagram over IPv4, bytes."""
