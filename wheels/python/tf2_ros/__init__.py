# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Stand-in for ROS's tf2_ros on a machine with the ROS wheels, which lack it.

It has the broadcasters, Buffer with look-ups, TransformListener and the exceptions, with the names,
arguments and answers of tf2_ros_py, on the suite's own transform buffer. It lacks the conversion of
whole messages (`Buffer.transform`, tf2_geometry_msgs), BufferClient and the service `tf2_frames`.
`make env` installs it into .venv only if no ROS is sourced, so that it never hides the real one.
"""

from tf2_ros.buffer import (
    Buffer,
    ConnectivityException,
    ExtrapolationException,
    InvalidArgumentException,
    LookupException,
    TimeoutException,
    TransformException,
)
from tf2_ros.static_transform_broadcaster import StaticTransformBroadcaster
from tf2_ros.transform_broadcaster import TransformBroadcaster
from tf2_ros.transform_listener import TransformListener

__all__ = [
    "Buffer",
    "ConnectivityException",
    "ExtrapolationException",
    "InvalidArgumentException",
    "LookupException",
    "StaticTransformBroadcaster",
    "TimeoutException",
    "TransformBroadcaster",
    "TransformException",
    "TransformListener",
]
