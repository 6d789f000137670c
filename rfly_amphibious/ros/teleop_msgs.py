"""Velocity setpoints as geometry_msgs/Twist or TwistStamped."""

from __future__ import annotations

from typing import Any

from geometry_msgs.msg import Twist, TwistStamped

from rfly_amphibious.control.teleop import Velocity


def velocity_to_twist(velocity: Velocity, stamped: bool, stamp: Any, vehicle: str) -> Any:
    """In base_link's axes (of the vehicle with that frame prefix, which may be empty)."""
    twist = Twist()
    twist.linear.x, twist.linear.y, twist.linear.z = map(float, velocity[:3])
    twist.angular.z = float(velocity.yaw_rate)
    if not stamped:
        return twist
    message = TwistStamped(twist=twist)
    message.header.stamp = stamp
    message.header.frame_id = f"{vehicle}/base_link" if vehicle else "base_link"
    return message
