# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Paths of the set-up."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT))  # the set-up uses those parts of the suite that need no dependency

WHEELS = ROOT / "wheels"
VENV = ROOT / ".venv"
BUILD = ROOT / "build" / "wheels"
DOCS_TOOLS = BUILD / "docs"
STATE = VENV / "rfly_suite.json"
INSTALLED = VENV / "rfly_suite_installed.txt"
PYTHON = VENV / "bin" / "python"
SITE_PACKAGES = VENV / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"

STAND_INS = (
    "ackermann_msgs",
    "grid_map_msgs",
    "octomap_msgs",
    "simulation_interfaces",
    "tf2_msgs",
    "vision_msgs",
)
STAND_IN_MODULES = WHEELS / "python"
"""Stand-ins for Python packages that the wheels lack; never installed with a sourced ROS."""

LIBRARY_LOCK = WHEELS / "requirements-dev.txt"
ROS_LOCK = WHEELS / "requirements.txt"
PEERS_LOCK = WHEELS / "requirements-peers.txt"
STATIONS_LOCK = WHEELS / "requirements-stations.txt"
COLCON_LOCK = WHEELS / "requirements-colcon.txt"
UV_LOCK = WHEELS / "requirements-uv.txt"
DOCS_LOCK = WHEELS / "requirements-docs.txt"
SOURCED = os.environ.get("RFLY_ROS") == "sourced"
"""True if setup.sh found a sourced ROS 2 installation, which is then used."""
