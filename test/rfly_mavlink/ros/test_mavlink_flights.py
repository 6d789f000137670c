# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Flights of a ground station through running nodes: where the vehicle is, and what is shown."""

from __future__ import annotations

import math
from contextlib import ExitStack

import pytest
from mavlink_station import NAN, ORIGIN

pytestmark = [pytest.mark.ros, pytest.mark.needs("pymavlink")]

ARM = 400
RETURN = 20
LAND = 21
ORBIT = 34
SET_HOME = 179
ROI = 195
REPOSITION = 192
REQUEST = 512
UNSUPPORTED = 3
HOLD = 4 << 16 | 3 << 24
"""PX4's number of the mode."""


@pytest.fixture
def start(peer, domain_id):
    """Starts hawk's nodes, in a world with simulated time."""
    from mavlink_fleet import Hawk, level_world

    with ExitStack() as stack:
        stack.enter_context(level_world(peer))
        yield lambda **parameters: Hawk(peer, domain_id, stack, **parameters)


def reposition(hawk, degrees, north=NAN, east=NAN):
    """Ask for a yaw here, or at a place at 25 m; wait until it rests."""
    from mavlink_fleet import EAST_M, NORTH_M

    latitude, longitude = ORIGIN[0] + north / NORTH_M, ORIGIN[1] + east / EAST_M
    yaw = math.radians(degrees)
    params = (-1.0, 1.0, 0.0, yaw, latitude, longitude, ORIGIN[2] + 25.0)
    assert hawk.command(REPOSITION, *params) == 0
    turns = hawk.last("ATTITUDE").yawspeed
    hawk.until(lambda: hawk.last("ATTITUDE").yawspeed != turns and not hawk.rests)
    hawk.until(lambda: hawk.rests)


@pytest.mark.exhaustive
def test_the_take_off_slider_and_a_yaw_in_place_and_with_way(start):
    hawk = start()
    hawk.fly_up(25.0)
    hawk.until(lambda: hawk.last("HEARTBEAT").custom_mode == HOLD)

    # in place: 4° short were shown as done
    reposition(hawk, 100.0)
    assert hawk.heading == pytest.approx(100.0, abs=0.1)

    # the way leads to the north-east, the nose looks to the north-west
    reposition(hawk, -40.0, 20.0, 15.0)
    assert hawk.heading == pytest.approx(-40.0, abs=0.1)
    assert hawk.place == pytest.approx((20.0, 15.0, 25.0), abs=0.1)

    # after the landing it shows what it does: nothing
    assert hawk.command(LAND) == 0
    hawk.until(lambda: not hawk.last("HEARTBEAT").base_mode & 128)
    assert hawk.command(ARM, 1.0) == 0
    hawk.until(lambda: hawk.last("HEARTBEAT").base_mode & 128)
    assert hawk.last("HEARTBEAT").custom_mode == HOLD
    hawk.stop()


def test_an_orbit_is_reported_as_long_as_it_is_flown(start, peer):
    """Counter-clockwise around a place 20 m to the north, 12 m above home."""
    from mavlink_fleet import NORTH_M

    hawk = start()
    hawk.fly_up(12.0)
    assert hawk.last("ORBIT_EXECUTION_STATUS") is None

    north = ORIGIN[0] + 20.0 / NORTH_M
    assert hawk.command(ORBIT, -15.0, NAN, 0, NAN, north, ORIGIN[1], ORIGIN[2] + 12.0) == 0
    circle = hawk.until(lambda: hawk.last("ORBIT_EXECUTION_STATUS"))
    assert (circle.radius, circle.frame) == (-15.0, 0)
    # COMMAND_LONG holds floats
    assert (circle.x, circle.y) == pytest.approx((north * 1e7, 80_000_000), abs=20)
    assert circle.z == pytest.approx(512.0, abs=1e-3)
    hawk.until(lambda: abs(math.dist(hawk.place, (20.0, 0.0, 12.0)) - 15.0) < 0.3)

    # the hold ends it
    assert hawk.command(REPOSITION, -1.0, 1.0) == 0
    hawk.until(lambda: hawk.rests)
    before = hawk.last("ORBIT_EXECUTION_STATUS")
    beats = hawk.last("HEARTBEAT")
    hawk.until(lambda: hawk.last("HEARTBEAT") is not beats)
    assert hawk.last("ORBIT_EXECUTION_STATUS") is before
    hawk.stop()


@pytest.mark.exhaustive
def test_a_return_climbs_to_its_parameter_and_leads_to_the_home_that_was_set(start):
    from mavlink_fleet import EAST_M, NORTH_M

    hawk = start(**{"hawk.parameters": "['RTL_RETURN_ALT=40']"})
    hawk.fly_up(12.0)
    home = hawk.last("HOME_POSITION")
    assert (home.x, home.y, home.altitude) == (0.0, 0.0, 500_000)

    latitude, longitude = ORIGIN[0] + 30.0 / NORTH_M, ORIGIN[1] + 20.0 / EAST_M
    assert hawk.command(SET_HOME, 0.0, 0, 0, NAN, latitude, longitude, ORIGIN[2]) == 0
    home = hawk.until(lambda: (new := hawk.last("HOME_POSITION")) is not home and new)
    assert (home.x, home.y, home.z) == pytest.approx((30.0, 20.0, 0.0), abs=0.3)
    assert home.latitude == pytest.approx(latitude * 1e7, abs=20)
    assert home.longitude == pytest.approx(longitude * 1e7, abs=20)

    # up first, over the place where it was; then home, and down
    assert hawk.command(RETURN) == 0
    hawk.until(lambda: hawk.place[2] > 38.9)
    assert math.dist(hawk.place[:2], (0.0, 0.0)) < 1.0
    hawk.until(lambda: math.dist(hawk.place[:2], (30.0, 20.0)) < 5.0)
    assert hawk.place[2] == pytest.approx(40.0, abs=0.2)
    hawk.until(lambda: not hawk.last("HEARTBEAT").base_mode & 128)
    assert hawk.place == pytest.approx((home.x, home.y, 0.0), abs=0.3)
    hawk.stop()


def test_nose_and_gimbal_look_at_a_region_of_interest(start, peer):
    """The flights begin at 30 m height, 30 m to the north, and on the other side."""
    from mavlink_fleet import NORTH_M
    from std_msgs.msg import Float64
    from tf2_msgs.msg import TFMessage

    from rfly_common.ros.frame_lookup import transform_to_msg
    from rfly_common.ros.qos import COMMANDS, TF

    hawk = start()
    pitches = peer.receive(Float64, "hawk/gimbal/cmd", COMMANDS)
    joint = peer.publisher(TFMessage, "/tf", TF)
    level = (0.0, 0.0, 0.0, 1.0)
    link = transform_to_msg("hawk/base_link", "hawk/camera_link", (0.2, 0, 0), level, 0)
    joint.publish(TFMessage(transforms=[link]))
    hawk.until(lambda: hawk.last("GIMBAL_MANAGER_STATUS"))

    hawk.fly_up(30.0)
    latitude = ORIGIN[0] + 30.0 / NORTH_M
    assert hawk.command(ROI, 0.0, 0, 0, 0, latitude, ORIGIN[1], ORIGIN[2]) == 0
    hawk.until(lambda: abs(hawk.heading) < 1.0 and hawk.rests)
    # positive looks down there
    hawk.until(lambda: abs(pitches[-1].data - math.radians(45.0)) < 0.01)

    latitude = ORIGIN[0] + 60.0 / NORTH_M
    place = latitude, ORIGIN[1], ORIGIN[2] + 30.0
    assert hawk.command(REPOSITION, -1.0, 1.0, 0.0, NAN, *place) == 0
    hawk.until(lambda: hawk.place[0] > 59.5 and hawk.rests)
    assert abs(hawk.heading) == pytest.approx(180.0, abs=1.0)
    hawk.until(lambda: abs(pitches[-1].data - math.radians(45.0)) < 0.01)
    hawk.stop()


def test_a_recorder_makes_no_gimbal_but_a_joint_does(start, peer):
    """The recorder subscribes to all topics, commands included."""
    from sensor_msgs.msg import BatteryState
    from std_msgs.msg import Float64
    from tf2_msgs.msg import TFMessage

    from rfly_common.ros.frame_lookup import transform_to_msg
    from rfly_common.ros.qos import COMMANDS, STATE_IN, TF

    hawk = start()
    manager_information = 280.0

    # a message comes only after the node knows the subscriptions that were made before its own
    peer.receive(Float64, "hawk/gimbal/cmd", COMMANDS)
    batteries = peer.receive(BatteryState, "hawk/battery_state", STATE_IN)
    hawk.until(lambda: batteries)
    assert hawk.command(REQUEST, manager_information) == UNSUPPORTED
    assert hawk.last("GIMBAL_MANAGER_STATUS") is None

    # a joint
    level = (0.0, 0.0, 0.0, 1.0)
    link = transform_to_msg("hawk/base_link", "hawk/camera_link", (0.2, 0, 0), level, 0)
    moving = peer.publisher(TFMessage, "/tf", TF)

    def accepted():
        moving.publish(TFMessage(transforms=[link]))
        return hawk.command(REQUEST, manager_information) == 0

    hawk.until(accepted)
    assert hawk.last("GIMBAL_MANAGER_INFORMATION").gimbal_device_id == 1
    hawk.stop()
