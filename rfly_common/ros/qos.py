# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""QoS profiles by what a topic carries."""

from __future__ import annotations

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy, qos_profile_sensor_data

_RELIABLE = ReliabilityPolicy.RELIABLE
_BEST_EFFORT = ReliabilityPolicy.BEST_EFFORT
_KEPT = DurabilityPolicy.TRANSIENT_LOCAL

LATCHED = QoSProfile(depth=1, reliability=_RELIABLE, durability=_KEPT)
"""Maps, clouds, planned paths: a late subscriber gets the last one; both ends need it."""
STATE_OUT = QoSProfile(depth=10, reliability=_RELIABLE)
"""Poses, odometry and sensors that nodes publish: a reliable publisher matches every subscription,
a best-effort one none of the default subscriptions."""
STATE_IN = QoSProfile(depth=1, reliability=_BEST_EFFORT)
"""Poses and odometry of other robots: best effort matches any publisher."""
REPORTS_IN = QoSProfile(depth=100, reliability=_BEST_EFFORT)
"""Reports of many nodes that repeat: a lost one is not waited for, as the next one says more."""
FLEET_OUT = QoSProfile(depth=10, reliability=_RELIABLE)
"""`vehicle_states` that a node publishes."""
FLEET_IN = QoSProfile(depth=100, reliability=_RELIABLE)
"""`vehicle_states` of many publishers, with partial updates."""
COMMANDS = QoSProfile(depth=10, reliability=_RELIABLE)
"""Commands: losing one matters, and none is latched."""
FEEDBACK_OUT = QoSProfile(depth=100, reliability=_RELIABLE)
"""Feedback of RflySim3D, which comes in bursts of one message for each vehicle."""
CONTACTS_OUT = QoSProfile(depth=100, reliability=_RELIABLE)
"""Begin and end of contacts: losing one matters."""
SENSORS = qos_profile_sensor_data
"""Subscriptions to sensors, which match any publisher."""
TF = QoSProfile(depth=100, reliability=_RELIABLE)
TF_STATIC_OUT = QoSProfile(depth=1, reliability=_RELIABLE, durability=_KEPT)
TF_STATIC_IN = QoSProfile(depth=100, reliability=_RELIABLE, durability=_KEPT)
CLOCK = QoSProfile(depth=1, reliability=_RELIABLE)


def sensor_qos(lock_step: bool) -> QoSProfile:
    """Return the QoS of subscriptions to sensor topics: lock-step may lose nothing."""
    return STATE_OUT if lock_step else SENSORS
