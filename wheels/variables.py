# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Environment variables of the set-up's commands, and of commands run in .venv."""

from __future__ import annotations

import os
import re
from pathlib import Path

from layout import SOURCED, VENV

_ROS_VARIABLES = (
    "AMENT_PREFIX_PATH",
    "CMAKE_PREFIX_PATH",
    "COLCON_PREFIX_PATH",
    "PYTHONPATH",
    "RMW_IMPLEMENTATION",
    "ROS_DISTRO",
    "ROS_PYTHON_VERSION",
    "ROS_VERSION",
    "_ROS_WHEELS_BOOTSTRAP_COMPLETE",
    "_RFLY_SUITE_ENVIRONMENT",  # it says that LD_LIBRARY_PATH is set, which goes too
)


def base_environment() -> dict[str, str]:
    """Return the user's environment.

    If ROS comes from wheels, variables that a half-sourced shell left behind are dropped.
    """
    env = {
        key: value
        for key, value in os.environ.items()
        if key not in ("RFLY_ROS", "PYTHONHOME", "VIRTUAL_ENV")
    }
    if not SOURCED:
        ros_prefixes = [
            prefix for prefix in env.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if prefix
        ]
        libraries = [
            folder
            for folder in env.pop("LD_LIBRARY_PATH", "").split(os.pathsep)
            if folder
            and not (Path(folder) / "librcl.so").exists()
            and not re.fullmatch(r"ros_.*\.libs", os.path.basename(folder))
            and not any(folder.startswith(prefix) for prefix in ros_prefixes)
        ]
        env = {key: value for key, value in env.items() if key not in _ROS_VARIABLES}
        if libraries:
            env["LD_LIBRARY_PATH"] = os.pathsep.join(libraries)
    return env


def run_environment() -> dict[str, str]:
    env = base_environment()
    env["VIRTUAL_ENV"] = str(VENV)
    env["PATH"] = os.pathsep.join([str(VENV / "bin"), env.get("PATH", os.defpath)])
    return env


def uv_settings(env: dict[str, str]) -> dict[str, str]:
    """Return pip's settings by variable as uv's, which does not read them, and trust system
    certificates.

    pip trusts those, and they may be the only place that knows a network's own certificate
    authority.
    """
    settings = {} if "UV_SYSTEM_CERTS" in env else {"UV_SYSTEM_CERTS": "1"}
    for uv_name, pip_name in (
        ("UV_DEFAULT_INDEX", "PIP_INDEX_URL"),
        ("SSL_CERT_FILE", "PIP_CERT"),
    ):
        if pip_name in env and uv_name not in env:
            settings[uv_name] = env[pip_name]
    return settings
