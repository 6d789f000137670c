"""QoS profiles by what a topic carries."""

from __future__ import annotations

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy, qos_profile_sensor_data

_RELIABLE = ReliabilityPolicy.RELIABLE
_BEST_EFFORT = ReliabilityPolicy.BEST_EFFORT
_KEPT = DurabilityPolicy.TRANSIENT_LOCAL

LATCHED = QoSProfile(depth=1, reliability=_RELIABLE, durability=_KEPT)
"""maps, clouds, planned paths: a late subscriber gets the last one; both ends need it"""
STATE_OUT = QoSProfile(depth=10, reliability=_RELIABLE)
"""poses and odometry that we publish: RViz's displays ask for reliable"""
STATE_IN = QoSProfile(depth=1, reliability=_BEST_EFFORT)
"""poses and odometry of foreign robots: best effort matches any publisher"""
FLEET_OUT = QoSProfile(depth=10, reliability=_RELIABLE)
FLEET_IN = QoSProfile(depth=100, reliability=_RELIABLE)
"""`vehicle_states`: our own type, many publishers, partial updates"""
COMMANDS = QoSProfile(depth=10, reliability=_RELIABLE)
"""losing one matters; never latched"""
FEEDBACK_OUT = QoSProfile(depth=100, reliability=_RELIABLE)
"""what RflySim3D says: it comes in bursts, one message for each vehicle"""
CONTACTS_OUT = QoSProfile(depth=100, reliability=_RELIABLE)
"""begin and end of contacts: losing one matters"""
SENSORS = qos_profile_sensor_data
TF = QoSProfile(depth=100, reliability=_RELIABLE)
TF_STATIC_OUT = QoSProfile(depth=1, reliability=_RELIABLE, durability=_KEPT)
TF_STATIC_IN = QoSProfile(depth=100, reliability=_RELIABLE, durability=_KEPT)
CLOCK = QoSProfile(depth=1, reliability=_BEST_EFFORT)


def sensor_qos(lock_step: bool) -> QoSProfile:
    """Of sensor topics, for both ends: with lock-step nothing may be lost, else the newest counts."""
    return QoSProfile(depth=10, reliability=_RELIABLE) if lock_step else SENSORS
