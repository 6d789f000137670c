# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Completion of items: poses worked out by hand."""

import math

import pytest

from rfly_missions.execution.completion_monitor import CompletionMonitor
from rfly_missions.mission.items import MissionItem, MissionMode

T = MissionItem.takeoff((10, 20, -30))
W = MissionItem.waypoint((100, 0, -10))
WIDE = MissionItem.waypoint((100, 0, -10), radius=5)
L = MissionItem.land((50, 60, -2))
R = MissionItem.return_to_launch()
START = MissionItem.waypoint((0, 0, -10))

CASES = {
    "take-off, 1.1 m below": ("MR", T, (10, 20, -28.9), False),
    "take-off, 0.9 m below": ("MR", T, (10, 20, -29.1), True),
    "take-off, beside": ("FW", T, (12, 20, -30), False),
    "waypoint without a radius, 1.1 m off": ("MR", W, (98.9, 0, -10), False),
    "waypoint without a radius, 0.9 m off": ("MR", W, (99.1, 0, -10), True),
    "waypoint, 4.9 m off in the room": ("MR", WIDE, (100, 3.9, -12.9), True),
    "waypoint, 5.1 m off": ("MR", WIDE, (100, 4.1, -13.1), False),
    "the plane passed, multirotor": ("MR", WIDE, (101, 30, -10), False),
    "the plane passed, fixed wing": ("FW", WIDE, (100.1, 30, -10), True),
    "the plane not yet passed": ("FW", WIDE, (99.9, 30, -10), False),
    "landed": ("MR", L, (50.6, 60.6, -2.29), True),
    "still 0.4 m up": ("MR", L, (50, 60, -2.4), False),
    "down, 1.1 m beside": ("MR", L, (51.1, 60, -2), False),
    "lower than the touchdown point": ("MR", L, (50, 60, -1.5), True),
    "home, at any height": ("MR", R, (3.0, 4.9, -80), True),
    "1.1 m from home": ("MR", R, (3, 5.1, 0), False),
    "39 m from home, fixed wing with loiter radius 40": ("FW", R, (3, 43, -80), True),
    "41 m from home, fixed wing": ("FW", R, (3, 45, -80), False),
    "hold": ("MR", MissionItem(MissionMode.HOLD, (0, 0, 0)), (0, 0, 0), False),
    "armed": ("MR", MissionItem(MissionMode.ARMED, (0, 0, 0)), (0, 0, 0), False),
}


def monitor(kind="MR", **options):
    return CompletionMonitor(
        **({"uav_type": "fixed-wing", "loiter_radius": 40.0} if kind == "FW" else {}), **options
    )


@pytest.mark.parametrize(("kind", "item", "position", "done"), CASES.values(), ids=CASES)
def test_places(kind, item, position, done):
    assert monitor(kind).update((*position, 0.0), item, (3, 4, 0), previous=START) is done


def test_the_line_begins_where_the_item_began_if_there_is_no_previous_one():
    """The line comes from the south-west: a point north of the way-point is past the plane."""
    watch = monitor("FW")
    assert not watch.update((0, -100, -10, 0), WIDE)
    assert not watch.update((0, 90, -10, 0), WIDE)
    assert watch.update((80, 21, -10, 0), WIDE)


def test_a_vertical_line_has_no_plane():
    above = MissionItem.waypoint((100, 0, -50))
    assert not monitor("FW").update((300, 0, -80, 0), above, previous=W)


def around(watch, item, degrees, radius=40.0, down=-30.0, center=(7.0, -3.0)):
    """Return the first bearing (deg) at which an orbit is done; None for never."""
    for bearing in degrees:
        angle = math.radians(bearing)
        pose = (
            center[0] + radius * math.cos(angle),
            center[1] + radius * math.sin(angle),
            down,
            0.0,
        )
        if watch.update(pose, item):
            return bearing
    return None


def orbit(direction, turns):
    return MissionItem.orbit((7, -3, -30), 40.0, direction, turns)


def test_turns_are_counted_in_their_own_direction():
    assert around(monitor(), orbit(1, 1.5), range(100, 2000, 5)) == 640
    assert around(monitor(), orbit(-1, 1.5), range(100, -2000, -5)) == -440
    assert around(monitor(), orbit(1, 1), range(0, -3600, -5)) is None
    assert around(monitor(), orbit(-1, 1), range(0, 3600, 5)) is None
    assert around(monitor(), orbit(0, 2), range(0, 3600, 10)) == 720
    assert around(monitor(), orbit(0, 2), range(0, -3600, -10)) == -720
    assert around(monitor(), orbit(1, math.inf), range(0, 36000, 30)) is None


def test_a_turn_back_does_not_count_twice():
    watch = monitor()
    item = orbit(0, 1)
    assert around(watch, item, [0, 90, 180, 90, 180, 90, 180, 270]) is None
    assert around(watch, item, [359.9]) is None
    assert around(watch, item, [360]) == 360


def test_counting_begins_on_the_circle():
    """The circle is reached within 10 % of the radius, height included.

    Drifting away later ends nothing.
    """
    watch = monitor()
    item = orbit(1, 1)
    assert around(watch, item, range(0, 720, 10), radius=44.1) is None
    assert around(watch, item, range(0, 720, 10), down=-25.9) is None
    assert around(watch, item, [0], radius=43.9) is None
    assert around(watch, item, range(10, 720, 10), radius=50.0) == 360

    assert around(monitor(), orbit(1, 0), [33]) == 33

    small = MissionItem.orbit((7, -3, -30), 5.0, 1, 0)
    assert around(monitor(), small, [0], radius=5.9) == 0
    assert around(monitor(), small, [0], radius=6.1) is None
    assert around(monitor(orbit_tolerance=0.5), small, [0], radius=5.9) is None


def test_it_starts_afresh_with_another_item_and_at_a_new_pass():
    watch = monitor()
    item = orbit(1, 1)
    assert around(watch, item, range(0, 350, 10)) is None
    assert around(watch, W, [0]) is None
    assert around(watch, item, range(0, 350, 10)) is None
    watch.reset()
    assert around(watch, item, range(0, 360, 10)) is None
    assert around(watch, item, [360]) == 360


def mavlink(command, *params, position=(0, 0, -10)):
    return MissionItem.mavlink(command, position, (*params, *[0.0] * (4 - len(params))))


def test_conditions_of_mavlink():
    now = [100.0]
    watch = monitor(clock=lambda: now[0])
    delay = mavlink(112, 5)
    assert not watch.update((0, 0, 0, 0), delay)
    now[0] = 104.9
    assert not watch.update((0, 0, 0, 0), delay)
    now[0] = 105.0
    assert watch.update((0, 0, 0, 0), delay)

    # climb
    climb = mavlink(113, 2, position=(0, 0, -60))
    assert not watch.update((0, 0, -58, 0), climb)
    assert watch.update((0, 0, -59.5, 0), climb)

    # distance
    near = mavlink(114, 50)
    assert not watch.update((0, 0, -10, 0), near, next_position=(60, 0, -99))
    assert watch.update((10, 0, -10, 0), near, next_position=(60, 0, -99))

    # yaw
    turn = mavlink(115, 270)
    assert not watch.update((0, 0, 0, math.radians(-96)), turn)
    assert watch.update((0, 0, 0, math.radians(-86)), turn)
    assert monitor("FW").update((0, 0, 0, 0.0), turn)


def test_other_commands_are_done_at_once_and_logged_once():
    logged = []
    watch = monitor(log=logged.append)
    trigger = mavlink(206, 25, 0, 1)
    assert watch.update((0, 0, 0, 0), trigger)
    assert watch.update((0, 0, 0, 0), trigger)
    assert logged == ["command 206 [25.0, 0.0, 1.0, 0.0] is not carried out here: done at once"]

    assert not watch.update((0, 0, -10, 0), mavlink(19, 30))


@pytest.mark.parametrize("first", [0, 0.5, -3, 19, 112, 150, 177, 178, 206, 600, 1e9])
def test_a_custom_item_is_the_users_whatever_its_params(first):
    logged = []
    watch = monitor(log=logged.append)
    item = MissionItem.custom((0, 0, -10), (first, 0, 0, 0))
    assert not watch.update((0, 0, -10, 0), item)
    assert logged == []


def test_a_callback_decides_about_custom_items():
    calls = []

    def done(pose, item):
        calls.append((tuple(pose), item))
        return pose[0] > 5

    watch = monitor(custom=done)
    item = mavlink(206, 0)
    assert not watch.update((5, 0, 0, 1), item)
    assert watch.update((6, 0, 0, 1), item)
    assert calls[0] == ((5, 0, 0, 1), item)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("uav_type", {"uav_type": "plane"}),
        ("takeoff_tolerance", {"takeoff_tolerance": 0}),
        ("orbit_tolerance", {"orbit_tolerance": -1}),
    ],
)
def test_wrong_arguments_are_named(name, options):
    with pytest.raises(ValueError, match=name):
        CompletionMonitor(**options)
    with pytest.raises(ValueError, match="pose"):
        monitor().update((0, 0, math.nan, 0), W)
