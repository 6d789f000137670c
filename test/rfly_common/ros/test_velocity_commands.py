# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`cmd_vel` of either type and in any frame of the body."""

from __future__ import annotations

import math

import pytest

pytestmark = pytest.mark.ros


@pytest.fixture(params=[False, True], ids=["", "events"])
def vehicle(request, domain_id):
    """Return a vehicle's node, what it took and what it refused.

    rclpy's executor of events, with which motion controllers wake, keeps a destroyed subscription
    until the callback ends.
    """
    from node_harness import Peer

    from rfly_common.ros.frame_lookup import Frames
    from rfly_common.ros.velocity_commands import VelocityCommands

    peer = Peer(domain_id, "vehicle", events=request.param)
    peer.taken = []
    peer.refused = []
    peer.frames = Frames(peer.node, listen=False)
    peer.commands = VelocityCommands(
        peer.node,
        "cmd_vel",
        "bug/base_link",
        peer.frames,
        stamped=True,
        take=peer.taken.append,
        refuse=peer.refused.append,
    )
    yield peer
    peer.close()


def test_the_type_that_is_published_is_taken(vehicle, domain_id):
    """First a Twist, then, after its sender has gone, a TwistStamped."""
    from geometry_msgs.msg import Twist, TwistStamped
    from node_harness import Peer

    from rfly_common.ros.qos import COMMANDS

    for kind, speed in ((Twist, 1.0), (TwistStamped, 2.0), (Twist, 3.0)):
        sender = Peer(domain_id, "sender")
        velocity = sender.node.create_publisher(kind, "cmd_vel", COMMANDS)
        message = kind()
        getattr(message, "twist", message).linear.x = speed

        def arrived(velocity=velocity, message=message, speed=speed):
            velocity.publish(message)
            return vehicle.taken and vehicle.taken[-1].linear.x == speed

        vehicle.spin_until(arrived)
        sender.close()
        vehicle.spin_until(lambda: not vehicle.node.count_publishers("cmd_vel"))
    assert vehicle.refused == []


@pytest.mark.parametrize(
    ("frame_id", "is_taken"),
    [
        ("", True),
        ("base_link", True),
        ("bug/base_link", True),
        ("base_footprint", True),
        ("bug/base_footprint", True),
        ("teleop_twist_joy", True),
        ("bug/chassis", True),  # 0.2 m above base_link, not turned
        ("map", False),
        ("odom", False),
        ("bug/camera", False),  # turned
        ("bug/nose", False),  # 1 m ahead: it moves sideways in a turn
        ("other/base_link", False),
        ("nowhere", False),
    ],
)
def test_frames_with_the_body_s_place_and_axes(frame_id, is_taken, vehicle):
    from geometry_msgs.msg import TwistStamped
    from tf2_msgs.msg import TFMessage

    from rfly_common.ros.frame_lookup import transform_to_msg

    half = math.sqrt(0.5)
    none = (0.0, 0.0, 0.0, 1.0)
    places = {
        ("bug/base_link", "bug/chassis"): ((0.0, 0.0, 0.2), none),
        ("bug/base_link", "bug/camera"): ((0.0, 0.0, 0.0), (half, 0.0, 0.0, half)),
        ("bug/base_link", "bug/nose"): ((1.0, 0.0, 0.0), none),
        ("odom", "bug/base_link"): ((5.0, 0.0, 0.0), none),
        ("map", "odom"): ((0.0, 0.0, 0.0), none),
        ("odom", "other/base_link"): ((9.0, 0.0, 0.0), none),
    }
    transforms = [transform_to_msg(*ends, *pose, 0) for ends, pose in places.items()]
    vehicle.frames.listen()
    vehicle.frames._on_tf(TFMessage(transforms=transforms), static=True)

    message = TwistStamped()
    message.header.frame_id = frame_id
    vehicle.commands._on_stamped(message)
    assert (len(vehicle.taken), len(vehicle.refused)) == ((1, 0) if is_taken else (0, 1))
    assert is_taken or vehicle.refused == [
        f"header.frame_id is {frame_id!r}, expected bug/base_link: it is in the body's axes"
    ]
