# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The stand-in for tf2_ros through DDS: what user code writes first, and what it gets.

With a ROS installation the same tests run against the real one.
"""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from optional_parts import late_module

pytestmark = [pytest.mark.ros, pytest.mark.needs("tf2_ros")]

tf2_ros = late_module("tf2_ros")
geometry_msgs = late_module("geometry_msgs.msg")
time = late_module("rclpy.time")
duration = late_module("rclpy.duration")

HALF = float(np.sqrt(0.5))
"""Sine and cosine of 45 degrees."""


def transform(parent, child, seconds=0.0, xyz=(0.0, 0.0, 0.0), xyzw=(0.0, 0.0, 0.0, 1.0)):
    """Return a TransformStamped."""
    message = geometry_msgs.TransformStamped(child_frame_id=child)
    message.header.frame_id = parent
    message.header.stamp = at(seconds).to_msg()
    t = message.transform.translation
    q = message.transform.rotation
    t.x, t.y, t.z = map(float, xyz)
    q.x, q.y, q.z, q.w = map(float, xyzw)
    return message


def at(seconds):
    """Return a time of rclpy."""
    return time.Time(nanoseconds=round(seconds * 1e9))


def place(message):
    """Return translation and rotation of a TransformStamped, 7 numbers."""
    t = message.transform.translation
    q = message.transform.rotation
    return [t.x, t.y, t.z, q.x, q.y, q.z, q.w]


@pytest.fixture
def filled():
    """Return a buffer: map -> odom (turned by 90 degrees) stays, odom -> base moves for 2 s."""
    buffer = tf2_ros.Buffer()
    buffer.set_transform_static(
        transform("map", "odom", xyz=(10, 0, 0), xyzw=(0, 0, HALF, HALF)), "test"
    )
    for seconds in (100.0, 101.0, 102.0):
        buffer.set_transform(
            transform("odom", "base", seconds, (2 * (seconds - 100.0), 0, 0)), "test"
        )
    return buffer


def test_broadcasters_and_a_listener(peer):
    """A static transform reaches a listener that comes later; look-ups compose both kinds."""
    static = tf2_ros.StaticTransformBroadcaster(peer.node)
    static.sendTransform(transform("map", "odom", xyz=(1, 2, 3), xyzw=(0, 0, HALF, HALF)))
    static.sendTransform([transform("base", "laser", xyz=(0, 0, 0.5))])

    buffer = tf2_ros.Buffer(node=peer.node)
    listener = tf2_ros.TransformListener(buffer, peer.node)
    moving = tf2_ros.TransformBroadcaster(peer.node)
    assert not buffer.can_transform("map", "laser", time.Time())

    def heard():
        moving.sendTransform(transform("odom", "base", 5.0, (4, 0, 0)))
        return buffer.can_transform("map", "laser", time.Time())

    peer.spin_until(heard)
    found = buffer.lookup_transform("map", "laser", time.Time())
    # odom's x axis is map's y axis: 4 m along it is 4 m north
    np.testing.assert_allclose(place(found), [1, 6, 3.5, 0, 0, HALF, HALF], atol=1e-12)
    assert (found.header.frame_id, found.child_frame_id) == ("map", "laser")
    assert found.header.stamp.sec == 5
    listener.unregister()


def test_a_listener_with_a_thread_of_its_own(domain_id):
    """A look-up that waits, in a script that spins nothing."""
    import rclpy

    context = rclpy.Context()
    rclpy.init(context=context, domain_id=domain_id)
    node = rclpy.create_node("waits", context=context)
    other = rclpy.create_node("sends", context=context)
    try:
        buffer = tf2_ros.Buffer()
        listener = tf2_ros.TransformListener(buffer, node, spin_thread=True)
        tf2_ros.StaticTransformBroadcaster(other).sendTransform(transform("map", "odom"))
        found = buffer.lookup_transform(
            "map", "odom", time.Time(), timeout=duration.Duration(seconds=20.0)
        )
        assert place(found) == [0, 0, 0, 0, 0, 0, 1]
        listener.unregister()
    finally:
        node.destroy_node()
        other.destroy_node()
        rclpy.shutdown(context=context)


def test_times(filled):
    """Between two transforms it interpolates; time 0 is the newest; beyond it refuses."""
    for seconds, north in ((100.5, 1.0), (102.0, 4.0), (0.0, 4.0)):
        found = filled.lookup_transform("map", "base", at(seconds))
        np.testing.assert_allclose(place(found)[:3], [10, north, 0], atol=1e-12)
    assert found.header.stamp.sec == 102

    back = filled.lookup_transform("base", "map", at(101.0))
    np.testing.assert_allclose(place(back)[:3], [-2, 10, 0], atol=1e-12)
    assert filled.lookup_transform("map", "base", at(101.0).to_msg()).header.stamp.sec == 101

    for seconds in (99.9, 102.1):
        assert not filled.can_transform("map", "base", at(seconds))
        with pytest.raises(tf2_ros.ExtrapolationException):
            filled.lookup_transform("map", "base", at(seconds))
    assert filled.can_transform("map", "odom", at(1.0))  # static: at any time
    assert filled.get_latest_common_time("map", "base") == at(102.0)


def test_two_times_and_a_frame_that_stands_still(filled):
    """`base` at 102 s seen from `base` at 100 s: 4 m ahead."""
    found = filled.lookup_transform_full("base", at(100.0), "base", at(102.0), "map")
    np.testing.assert_allclose(place(found)[:3], [4, 0, 0], atol=1e-12)
    assert filled.can_transform_full("base", at(100.0), "base", at(102.0), "map")
    assert not filled.can_transform_full("base", at(100.0), "base", at(103.0), "map")


def test_errors(filled):
    """The exception of each mistake, all of one base class, and the reason on request."""
    filled.set_transform_static(transform("world", "moon"), "test")
    for target, source, error in (
        ("map", "nowhere", tf2_ros.LookupException),
        ("nowhere", "map", tf2_ros.LookupException),
        ("map", "moon", tf2_ros.ConnectivityException),
        ("map", "", tf2_ros.InvalidArgumentException),
        ("/map", "base", tf2_ros.InvalidArgumentException),
    ):
        with pytest.raises(error):
            filled.lookup_transform(target, source, time.Time())
        assert issubclass(error, tf2_ros.TransformException)
    known, reason = filled.can_transform("map", "nowhere", time.Time(), return_debug_tuple=True)
    assert not known
    assert "nowhere" in reason


def test_a_bad_transform_is_ignored_and_the_rest_of_its_message_taken(filled):
    """No callback of a listener raises, as with tf2, and the transforms around it count."""
    listener = tf2_ros.TransformListener.__new__(tf2_ros.TransformListener)
    listener.buffer = filled
    nan = float("nan")
    early = transform("map", "early", xyz=(9, 0, 0))
    early.header.stamp.sec = -1
    early.header.stamp.nanosec = 2**32 - 1
    bad = [
        transform("map", "map"),
        transform("", "x"),
        transform("map", ""),
        transform("map", "x", xyz=(nan, 0, 0)),
        transform("map", "x", xyzw=(nan, 0, 0, 1)),
        transform("map", "x", xyzw=(0, 0, 0, 0)),
        transform("map", "x", xyzw=(0, 0, 0, 1.006)),
        early,
    ]
    messages = importlib.import_module("tf2_msgs.msg")
    for callback, frame in ((listener.callback, "b"), (listener.static_callback, "c")):
        for number, each in enumerate(bad):
            good = transform("map", f"{frame}{number}", 1.0, xyz=(number, 0, 0))
            callback(messages.TFMessage(transforms=[each, good]))
            found = filled.lookup_transform("map", f"{frame}{number}", time.Time())
            assert place(found)[0] == number

    assert not filled.can_transform("map", "x", time.Time())


def test_a_loop_is_no_tree(filled):
    """tf2 takes both transforms, and look-ups raise LookupException."""
    filled.set_transform(transform("ring", "chain", 1.0), "test")
    filled.set_transform(transform("chain", "ring", 1.0), "test")
    with pytest.raises(tf2_ros.LookupException):
        filled.lookup_transform("map", "ring", time.Time())
    assert filled.can_transform("map", "base", time.Time())


def test_a_future_of_a_transform(filled):
    """It is set by the transform that completes the way."""
    future = filled.wait_for_transform_async("map", "laser", time.Time())
    assert not future.done()
    filled.set_transform_static(transform("base", "laser", xyz=(0, 0, 1)), "test")
    assert future.done()
    np.testing.assert_allclose(place(future.result())[:3], [10, 4, 1], atol=1e-12)
    assert filled.wait_for_transform_async("map", "base", time.Time()).done()


def test_cleared_and_short_memory(filled):
    """Static transforms stay after `clear`; `cache_time` bounds what is kept."""
    filled.clear()
    assert not filled.can_transform("map", "base", time.Time())
    buffer = tf2_ros.Buffer(cache_time=duration.Duration(seconds=30.0))
    for seconds in (100.0, 125.0, 140.0):
        buffer.set_transform(transform("odom", "base", seconds), "test")
    assert buffer.can_transform("odom", "base", at(125.0))
    assert not buffer.can_transform("odom", "base", at(105.0))


def test_the_modules_that_tutorials_import():
    """`from tf2_ros.buffer import Buffer` is as common as `from tf2_ros import Buffer`."""
    from tf2_ros.buffer import Buffer
    from tf2_ros.static_transform_broadcaster import StaticTransformBroadcaster
    from tf2_ros.transform_broadcaster import TransformBroadcaster
    from tf2_ros.transform_listener import TransformListener

    assert Buffer is tf2_ros.Buffer
    assert StaticTransformBroadcaster is tf2_ros.StaticTransformBroadcaster
    assert TransformBroadcaster is tf2_ros.TransformBroadcaster
    assert TransformListener is tf2_ros.TransformListener
