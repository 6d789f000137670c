# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Whole missions flown without ROS: items, limits, the ground, fence, jumps, conditions."""

import json
import math
from contextlib import nullcontext

import numpy as np
import pytest
from mission_flights import KINDS, Flight, R, T

from rfly_common.errors import ConfigError
from rfly_missions.execution.runner import MissionRunner
from rfly_missions.followers.fixed_wing import FixedWingLimits
from rfly_missions.followers.multirotor import MultirotorLimits
from rfly_missions.mission.checks import check_items
from rfly_missions.mission.files import read_mission, write_mission
from rfly_missions.mission.geofence import FenceCircle, Geofence
from rfly_missions.mission.items import MissionCommand, MissionItem, MissionMode

NAN = math.nan
A = MissionItem.waypoint((150, 0, -30), NAN, 3.0)
B = MissionItem.waypoint((150, 150, -30), NAN, 3.0)
C = MissionItem.waypoint((0, 150, -30), NAN, 3.0)
L = MissionItem.land((20, 30, 0))


def mavlink(command, *params, position=(150, 0, -30)):
    return MissionItem.mavlink(command, position, (*params, *[0.0] * (4 - len(params))))


@pytest.mark.parametrize("kind", KINDS)
def test_a_mission_passes_every_point_in_order(kind):
    flight = Flight(kind, [T, A, B, C, L]).to_end()
    assert flight.shown == [
        ("TAKEOFF", 0),
        ("WAYPOINT", 1),
        ("WAYPOINT", 2),
        ("WAYPOINT", 3),
        ("LAND", 4),
    ]
    assert (flight.state.items_done, flight.state.item_count) == (5, 5)

    # places
    track = np.array(flight.track)
    reached = [np.argmin(np.linalg.norm(track - item.position, axis=1)) for item in (T, A, B, C, L)]
    assert reached == sorted(reached)
    for item, tolerance in zip((T, A, B, C, L), (1.0, 4.0, 4.0, 4.0, 1.1), strict=True):
        assert np.linalg.norm(track - item.position, axis=1).min() <= tolerance

    # at the end
    flight.run(15)
    assert flight.vehicle.position[2] == pytest.approx(0.0, abs=0.15)
    assert np.linalg.norm(flight.vehicle.velocity) < 0.2
    assert flight.state.params.current.mode is MissionMode.LAND


@pytest.mark.parametrize("kind", KINDS)
def test_the_limits_are_kept(kind):
    """Check the track alone: speeds, climb, acceleration, bank; no jump of position or velocity."""
    dt = 0.05
    flight = Flight(
        kind, [T, A, B, C, MissionItem.orbit((0, 0, -40), 40.0, -1, 1), L], dt=dt
    ).to_end()

    track = np.array(flight.track)
    velocity = np.array(flight.velocities)
    np.testing.assert_allclose(
        np.diff(track, axis=0)[:-1], dt * velocity[1:-1], atol=0.5 * 20 * dt * dt
    )

    horizontal = np.linalg.norm(velocity[:, :2], axis=1)
    acceleration = np.linalg.norm(np.diff(velocity[:, :2], axis=0), axis=1) / dt
    if kind == "multirotor":
        limits = MultirotorLimits()
        assert horizontal.max() <= limits.speed + 1e-6
        assert acceleration.max() <= limits.acceleration + 1e-6
        assert -velocity[:, 2].min() <= limits.climb + 1e-9
        assert velocity[:, 2].max() <= limits.descent + 1e-9
    else:
        wing = FixedWingLimits()
        flown = horizontal[np.array(flight.track)[:, 2] < -1.0]
        assert wing.min_speed - 0.1 <= flown.min()
        assert flown.max() <= wing.max_speed
        most = math.hypot(9.80665 * math.tan(wing.bank), wing.acceleration)
        assert acceleration.max() <= most * 1.001
        assert np.abs(np.array(flight.eulers)[:, 0]).max() <= wing.bank + 1e-9
        assert -velocity[:, 2].min() <= wing.climb + 1e-9


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("direction", [1, -1])
def test_an_orbit_turns_its_way_and_as_often_as_requested(kind, direction):
    center = np.array([100.0, 50.0])
    orbit = MissionItem.orbit((*center, -35), 45.0, direction, 2.5)
    flight = Flight(kind, [T, orbit, A]).to_end()

    begin, end = (
        np.searchsorted(np.arange(len(flight.track)) * flight.dt, t) for t in flight.times[1:3]
    )
    relative = np.array(flight.track)[begin:end, :2] - center
    distance = np.linalg.norm(relative, axis=1)
    on_circle = np.argmax(np.abs(distance - 45.0) <= 4.5)
    turned = np.unwrap(np.arctan2(relative[on_circle:, 1], relative[on_circle:, 0]))

    assert direction * (turned[-1] - turned[0]) / (2 * math.pi) == pytest.approx(2.5, abs=0.1)
    assert np.abs(distance[on_circle + 100 :] - 45.0).max() < 2.0


def test_a_circle_too_tight_for_a_wing_is_flown_as_tight_as_it_can():
    flight = Flight("fixed-wing", [T, MissionItem.orbit((100, 0, -30), 2.0, 1, 1)]).to_end()
    limits = FixedWingLimits()
    tightest = limits.min_speed**2 / (9.80665 * math.tan(limits.bank))
    assert flight.runner.step(0.05).params.previous.params[0] == 2.0
    assert 11.0 < 1.15 * tightest < 13.0


def test_two_runs_are_equal():
    first, second = (Flight("fixed-wing", [T, A, B, L]).run(60) for _ in range(2))
    assert first.track == second.track


def visited(flight):
    return [index for mode, index in flight.shown if mode == "WAYPOINT"]


def test_jumps_are_made_as_often_as_requested_and_count_anew_in_a_new_pass():
    jump = mavlink(177, 2, 2)
    flight = Flight("multirotor", [T, A, B, jump, C], limits=MultirotorLimits(speed=25.0)).to_end()
    assert visited(flight) == [1, 2, 1, 2, 1, 2, 4]

    flight.runner.command = MissionCommand.REPEAT
    flight.until(lambda: len(visited(flight)) == 14)
    assert visited(flight)[7:] == [1, 2, 1, 2, 1, 2, 4]
    assert not flight.state.finished


def test_a_jump_back_to_the_first_item_for_ever():
    flight = Flight("fixed-wing", [A, B, mavlink(177, 1, -1), L])
    flight.until(lambda: len(visited(flight)) == 8)
    assert visited(flight) == [0, 1] * 4
    assert flight.state.params.previous.mode is MissionMode.WAYPOINT


def test_a_jump_by_the_numbers_of_the_file():
    flight = Flight(
        "multirotor",
        [A, B, mavlink(177, 20, 1), C],
        numbers=(10, 20, 30, 40),
        limits=MultirotorLimits(speed=25.0),
    )
    assert visited(flight.to_end()) == [0, 1, 1, 3]


def test_a_jump_to_a_tag():
    items = [A, mavlink(600, 7), B, mavlink(601, 7, 2), C]
    flight = Flight("multirotor", items, limits=MultirotorLimits(speed=25.0)).to_end()
    assert visited(flight) == [0, 2, 2, 2, 4]
    with pytest.raises(ConfigError, match="item 1: jump to tag 8, no item has that tag"):
        flight.runner.load([mavlink(600, 7), mavlink(601, 8, 1)])


@pytest.mark.parametrize(
    ("items", "wrong"),
    [
        ([A, mavlink(177, 2, -1)], 1),
        ([A, mavlink(600, 7), mavlink(601, 7, -1), B], 1),
        ([A, mavlink(177, 3, -1), mavlink(177, 2, -1)], 1),
        # the first is done a hundred times, the second for ever
        ([A, mavlink(177, 3, 100), mavlink(177, 3, -1)], 2),
        ([A, mavlink(177, 2, 100), B], None),
        ([A, mavlink(177, 3, -1), mavlink(177, 2, 5), B], None),
        ([A, mavlink(600, 7), B, mavlink(601, 7, -1)], None),
        ([mavlink(177, 2, -1), A, mavlink(177, 1, -1)], None),
    ],
)
def test_jumps_for_ever_have_something_to_fly_in_between(items, wrong):
    numbers = range(1, len(items) + 1)
    told = pytest.raises(ConfigError, match=f"^mission item {wrong}: jumps for ever without")
    with told if wrong is not None else nullcontext():
        check_items(items, numbers, ground_vehicle=False)


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_camera_looks_at_does_not_bend_the_way(kind):
    """The way leads past a camera's target, far to the side and beyond the fence."""
    aside = mavlink(201, position=(400, 300, 0))
    fence = Geofence((FenceCircle((0.0, 0.0), 300.0),))
    flight = Flight(kind, [T, A, aside, B], fence=fence).to_end()
    assert visited(flight) == [1, 3]

    track = np.array(flight.track)
    leg = track[round(flight.times[2] / flight.dt) : round(flight.times[4] / flight.dt)]
    assert np.hypot(*(leg[-1, :2] - (150, 150))) <= 3.5
    offset = np.abs(leg[leg[:, 1] > 60.0][:, 0] - 150)  # once the corner is turned
    assert offset.max() < (2.0 if kind == "multirotor" else 8.0)


SURVEY = {
    "fileType": "Plan",
    "version": 1,
    "mission": {
        "version": 2,
        "plannedHomePosition": [47.0, 8.0, 500.0],
        "items": [
            {
                "type": "SimpleItem",
                "command": 530,
                "frame": 2,
                "params": [0, 2, None, None, None, None, None],
            },
            {"type": "SimpleItem", "command": 22, "frame": 3, "params": [15, 0, 0, None, 0, 0, 25]},
            {"type": "SimpleItem", "command": 178, "frame": 2, "params": [1, 11, -1, 0, 0, 0, 0]},
            {
                "type": "ComplexItem",
                "complexItemType": "survey",
                "TransectStyleComplexItem": {"Items": []},
            },
            {"type": "SimpleItem", "command": 18, "frame": 3, "params": [1, 0, -40, 0, 0, 0, 0]},
            {"type": "SimpleItem", "command": 177, "frame": 2, "params": [4, 1, 0, 0, 0, 0, 0]},
            {
                "type": "SimpleItem",
                "command": 21,
                "frame": 3,
                "params": [0, 0, 0, None, 47.0, 8.0005, 0],
            },
        ],
    },
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_survey_file_flies_to_its_end_and_so_does_what_is_written_of_it(kind, tmp_path):
    """Camera triggers, a speed, an orbit "here" and one jump back to the second item."""
    plan = json.loads(json.dumps(SURVEY))
    lines = [(47.001, 8.0), (47.001, 8.002), (47.0015, 8.002), (47.0015, 8.0)]
    plan["mission"]["items"][3]["TransectStyleComplexItem"]["Items"] = [
        {
            "type": "SimpleItem",
            "command": command,
            "frame": 2 if command == 206 else 3,
            "params": params,
        }
        for place in lines
        for command, params in ((16, [0, 0, 0, None, *place, 40]), (206, [25, 0, 1, 0, 0, 0, 0]))
    ]

    path = tmp_path / "survey.plan"
    path.write_text(json.dumps(plan), encoding="utf-8")
    mission_read = read_mission(path)
    assert write_mission(tmp_path / "again.waypoints", mission_read) == ()

    tracks = []
    limits = MultirotorLimits(speed=25.0) if kind == "multirotor" else None
    for mission in (mission_read, read_mission(tmp_path / "again.waypoints")):
        flight = Flight(kind, mission.items, numbers=mission.numbers, dt=0.1, limits=limits)
        flight.to_end()
        indices = [index for _, index in flight.shown]
        assert indices == [*range(13), *range(3, 14)]
        assert flight.state.items_done == len(indices)
        tracks.append(np.array(flight.track))
        orbit = mission.items[11].position
        np.testing.assert_allclose(orbit, [*mission.items[9].position[:2], -40], atol=1e-6)
        assert np.hypot(*(tracks[-1][-1][:2] - mission.items[13].position[:2])) <= 1.0
    np.testing.assert_allclose(tracks[0], tracks[1], atol=1e-3)


def test_a_late_start_and_then_the_whole_again():
    flight = Flight(
        "multirotor", [T, A, B, C], start_index=2, repeat=True, limits=MultirotorLimits(speed=25.0)
    )
    flight.until(lambda: len(flight.shown) == 7)
    assert [index for _, index in flight.shown] == [2, 3, 0, 1, 2, 3, 0]


@pytest.mark.parametrize("kind", KINDS)
def test_speed_changes(kind):
    flight = Flight(kind, [T, A, mavlink(178, 1, 12), B, mavlink(178, 1, -2), C]).to_end()
    speed = np.linalg.norm(np.array(flight.velocities)[:, :2], axis=1)
    step_of = dict(zip(flight.shown, (int(t / flight.dt) for t in flight.times), strict=True))
    default = {"multirotor": 8.0, "fixed-wing": 14.0}[kind]

    assert speed[step_of["WAYPOINT", 1] + 150 : step_of["CUSTOM", 2] - 100].max() == pytest.approx(
        default, abs=0.2
    )
    middle = (step_of["WAYPOINT", 3] + step_of["CUSTOM", 4]) // 2
    assert speed[middle] == pytest.approx(12.0, abs=0.2)
    assert speed[(step_of["WAYPOINT", 5] + len(speed)) // 2] == pytest.approx(default, abs=0.2)
    assert not flight.logged


@pytest.mark.parametrize("kind", KINDS)
def test_hold_resume_and_return(kind):
    flight = Flight(kind, [T, A, B, L])
    flight.until(lambda: flight.shown[-1:] == [("WAYPOINT", 1)]).run(6)
    flight.runner.command = MissionCommand.HOLD
    flight.step()

    where = np.array(flight.state.params.current.position)
    flight.run(40)
    distance = np.linalg.norm(np.array(flight.track)[-300:, :2] - where[:2], axis=1)
    if kind == "multirotor":
        assert distance.max() < 0.1
    else:
        np.testing.assert_allclose(distance, 25.0, atol=2.0)

    flight.runner.command = MissionCommand.RTL
    flight.run(60)
    assert np.hypot(*flight.vehicle.position[:2]) < (1.0 if kind == "multirotor" else 28.0)
    assert flight.vehicle.position[2] == pytest.approx(
        0.0 if kind == "multirotor" else where[2], abs=0.5
    )

    flight.runner.command = MissionCommand.DEFAULT
    flight.to_end()
    assert [index for mode, index in flight.shown if mode in ("TAKEOFF", "WAYPOINT", "LAND")] == [
        0,
        1,
        1,
        2,
        3,
    ]


def test_progress_within_items_and_what_interrupts_them():
    """Progress never falls and moves in small steps, also along an orbit's turns and during a hold.

    A commanded return is reported once it has come home.
    """
    orbit = MissionItem.orbit((60, 0, -30), radius=20.0, turn_direction=1, turns=2)
    flight = Flight("multirotor", [T, orbit, A, L])
    shares = []

    def step():
        flight.step()
        shares.append((flight.state.item_index + flight.state.item_share) / 4)

    while flight.state is None or flight.state.item_index < 2:
        step()

    turning = [share for share in shares if 0.25 < share < 0.5]
    assert len(turning) > 100

    for _ in range(40):
        step()
    flight.runner.command = MissionCommand.HOLD
    before = shares[-1]
    for _ in range(40):
        step()
    assert shares[-40:] == [before] * 40
    assert not flight.state.returned

    flight.runner.command = MissionCommand.RTL
    flight.until(lambda: flight.state.returned)
    assert np.hypot(*flight.vehicle.position[:2]) <= 1.0

    flight.runner.command = MissionCommand.DEFAULT
    step()
    assert not flight.state.returned
    while not flight.state.finished:
        step()

    assert (np.diff(shares) >= 0).all()
    assert np.diff(shares).max() < 0.04
    assert shares[-1] > 0.99


@pytest.mark.parametrize("kind", KINDS)
def test_out_of_the_fence_it_holds_and_then_returns(kind):
    """The straight ways lie inside.

    A vehicle moved outside goes home, until a command is given inside.
    """
    fence = Geofence((FenceCircle((0.0, 0.0), 250.0),))
    flight = Flight(kind, [T, A, B, C], fence=fence)
    flight.until(lambda: flight.shown[-1:] == [("WAYPOINT", 1)]).run(3)

    north, _, down = flight.vehicle.position
    flight.vehicle.position = (north, 260.0, down)
    flight.step()
    assert flight.state.breach == "area 1 of the fence (inclusion circle)"

    flight.run(60)
    assert [mode for mode, _ in flight.shown[-2:]] == ["HOLD", "RTL"]
    assert np.hypot(*flight.vehicle.position[:2]) < 28.0
    assert flight.times[-1] - flight.times[-2] == pytest.approx(2.0, abs=0.11)

    flight.runner.command = MissionCommand.DEFAULT
    flight.to_end()
    assert flight.state.breach == ""
    assert visited(flight) == [1, 1, 2, 3]


def test_missions_out_of_the_fence_are_refused():
    ring = Geofence(
        (FenceCircle((0.0, 0.0), 200.0), FenceCircle((75.0, 0.0), 20.0, inclusion=False))
    )

    with pytest.raises(
        ConfigError, match=r"item 1 \(WAYPOINT\), or the way to it, breaches area 2"
    ):
        Flight("multirotor", [T, A], fence=ring)
    with pytest.raises(
        ConfigError, match=r"item 1 \(WAYPOINT\), or the way to it, breaches area 1"
    ):
        Flight("multirotor", [T, B], fence=ring)

    with pytest.raises(ConfigError, match=r"item 0 \(ORBIT\).* breaches area 1"):
        Flight("multirotor", [MissionItem.orbit((0, 150, -9), 60.0)], fence=ring)
    with pytest.raises(ConfigError, match="home breaches area 2"):
        Flight("multirotor", [T], fence=ring, home=(75.0, 0.0, 0.0))


@pytest.mark.parametrize(
    ("items", "text"),
    [
        ([T, MissionItem(MissionMode.HOLD, (0, 0, 0))], "item 1: mode 7"),
        ([T, mavlink(177, 9, 1)], "item 1: jump to 9"),
        ([MissionItem.orbit((0, 0, 0), 0.0)], "item 0: radius 0"),
        ([MissionItem.orbit((0, 0, 0), 5.0, 0, -1)], "item 0: -1 turns"),
        (
            [T, MissionItem.waypoint((0, 0, -9), NAN, -1.0)],
            r"item 1: radius -1, expected 0 to 100,000 m",
        ),
        (
            [MissionItem.takeoff((0, 0, -1e300))],
            r"item 0: z -1e\+300, expected at most 100,000 m up or down",
        ),
    ],
)
def test_missions_that_cannot_be_flown_are_refused_and_change_nothing(items, text):
    flight = Flight("multirotor", [T, A])
    flight.run(5)
    with pytest.raises(ValueError, match=text):
        flight.runner.load(items)

    with pytest.raises(
        ConfigError, match=r"home: z 1e\+300, expected at most 100,000 m up or down"
    ):
        flight.runner.load([T, A], (0, 0, 1e300))
    with pytest.raises(ConfigError, match="start_index: 2, the mission has 2 items"):
        flight.runner.load([T, A], start_index=2)

    flight.to_end()
    assert flight.shown == [("TAKEOFF", 0), ("WAYPOINT", 1), ("HOLD", 1)]


def test_a_new_mission_starts_at_its_first_item_with_the_old_item_before_it():
    flight = Flight("multirotor", [T, A])
    flight.until(lambda: flight.shown[-1:] == [("WAYPOINT", 1)])
    flight.runner.load([B, C])
    flight.step()
    assert flight.state.params == (B, A)
    assert flight.state.items_done == 0


def test_conditions_and_waiting():
    """Delay 5 s, climb to 60 m, 40 m from the next item, yaw, loiter 4 s, hold 3 s."""
    stay = MissionItem.waypoint((150, 150, -30), NAN, 3.0, p3=3.0)
    items = [
        T,
        A,
        mavlink(112, 5),
        mavlink(113, 2, position=(150, 0, -60)),
        mavlink(114, 40),
        stay,
        mavlink(115, 270, position=(150, 150, -30)),
        mavlink(19, 4, 0, 20, position=(120, 150, -30)),
        mavlink(93, 2, position=(120, 150, -30)),
        C,
    ]

    flight = Flight("multirotor", items, hold_at_waypoints=True).to_end()
    assert [index for _, index in flight.shown[:-1]] == list(range(10))

    spent = np.diff(flight.times)
    track = np.array(flight.track)
    end = [track[round(t / flight.dt) - 1] for t in flight.times[1:]]

    assert spent[2] == pytest.approx(5.0, abs=0.11)
    assert end[3][2] == pytest.approx(-60, abs=1.1)
    assert np.hypot(*(end[4][:2] - (150, 150))) == pytest.approx(40, abs=1.0)
    assert np.hypot(*(end[5] - stay.position)[:2]) < 1.0
    assert spent[5] > 3.0

    heading = np.array(flight.eulers)[round(flight.times[7] / flight.dt) - 1, 2]
    assert math.degrees(heading) == pytest.approx(-90, abs=5.5)
    assert spent[7] > 4.0
    assert np.hypot(*(end[7][:2] - (120, 150))) < 0.5
    assert spent[8] == pytest.approx(2.0, abs=0.11)


@pytest.mark.parametrize(
    "turn",
    [
        [MissionItem.waypoint((150, 0, -30), math.radians(-40.0), 2.0)],
        [A, mavlink(115, 320)],
        [MissionItem.waypoint((150, 0, -30), math.radians(-40.0), 2.0), mavlink(178, 1, 5)],
    ],
)
def test_a_multirotor_keeps_a_yaw_where_it_stays_and_turns_along_the_next_way(turn):
    """A way-point or a condition has ended before the place and the yaw are reached exactly."""
    flight = Flight("multirotor", [T, *turn, mavlink(19, 6), B])
    flight.until(lambda: flight.state and flight.state.item_index == len(turn) + 1).run(5.5)
    assert flight.state.item_index == len(turn) + 1
    assert math.degrees(flight.vehicle.euler[2]) == pytest.approx(-40.0, abs=1e-6)
    assert flight.vehicle.position == pytest.approx((150.0, 0.0, -30.0), abs=0.01)

    flight.run(8.0)
    assert math.degrees(flight.vehicle.euler[2]) == pytest.approx(90.0, abs=1.0)


@pytest.mark.parametrize(
    ("look", "nowhere"),
    [
        (mavlink(195, position=(150, 75, 0)), mavlink(197)),
        (mavlink(201, 3, position=(150, 75, 0)), mavlink(201, 0)),
    ],
)
def test_the_nose_turns_to_a_region_of_interest_until_the_next_one(look, nowhere):
    """A lies west of the place and B east of it; the way to C leads south."""
    flight = Flight("multirotor", [T, look, A, B, nowhere, C])
    headings = []
    for ready in (
        lambda: flight.state and flight.state.item_index == 3,
        lambda: flight.state.item_index == 4,
        lambda: flight.state.finished,
    ):
        flight.until(ready)
        headings.append(math.degrees(flight.vehicle.euler[2]))
    assert headings[:2] == pytest.approx([90.0, -90.0], abs=5.0)
    assert abs(headings[2]) == pytest.approx(180.0, abs=1.0)
    assert flight.logged == []


def test_what_is_done_at_once_does_not_slow_the_flight():
    """Camera triggers along a line: the multirotor keeps its speed."""
    line = [MissionItem.waypoint((0, 40.0 * k, -20), NAN, 8.0) for k in range(1, 6)]
    items = [
        T,
        *[item for way in line for item in (way, mavlink(206, 25, 0, 1, position=way.position))],
    ]
    flight = Flight("multirotor", items).to_end()
    assert len(flight.logged) == 5
    speed = np.linalg.norm(np.array(flight.velocities)[:, :2], axis=1)
    moving = speed[int(flight.times[2] / flight.dt) : int(flight.times[3] / flight.dt) + 6]
    assert moving.min() > 1.0


def test_the_first_item_follows_armed_also_after_waiting_without_a_mission():
    runner = MissionRunner()
    idle = runner.step(0.1, (0, 0, 0, 0)).params
    assert (idle.current.mode, idle.previous.mode) == (MissionMode.HOLD, MissionMode.ARMED)
    runner.step(0.1, (5, 6, -1, 0))

    runner.load([T, A])
    current, previous = runner.step(0.1, (7, 8, -1, 0)).params
    assert (current, previous.mode) == (T, MissionMode.ARMED)
    assert previous.position.tolist() == [7, 8, -1]
    assert previous.params.tolist() == [-1, -1, -1, -1]

    # what follows a mission comes after what was flown
    runner.load([A])
    assert runner.step(0.1, (7, 8, -1, 0)).params.previous.mode is MissionMode.TAKEOFF


@pytest.mark.parametrize("kind", KINDS)
def test_custom_points_through_a_callback(kind):
    items_asked = []

    def done(pose, item):
        items_asked.append(item)
        return math.hypot(pose[0] - 60, pose[1] - 80) < 30.0

    point = MissionItem.custom((60, 80, -25), (0.5, 0, 0, 0))
    flight = Flight(kind, [T, point, A], custom=done).to_end()
    assert items_asked[-1] == point
    near = np.linalg.norm(np.array(flight.track)[:, :2] - (60, 80), axis=1).min()
    assert near <= 30.0


@pytest.mark.parametrize("first", [150.0, 177.0, 178.0, 206.0])
def test_custom_items_whose_numbers_look_like_commands_are_the_users(first):
    """No item jumps, changes speed or is done at once; the way leads to the item's position."""
    point = MissionItem.custom((60, 80, -25), (first, 1, 2, 0))
    flight = Flight("multirotor", [T, point, A])
    flight.until(lambda: flight.state and flight.state.item_index == 1)
    for _ in range(1200):
        flight.step()
    assert [name for name, _ in flight.shown] == ["TAKEOFF", "CUSTOM"]
    np.testing.assert_allclose(flight.vehicle.position, (60, 80, -25), atol=0.1)
    speed = np.linalg.norm(np.array(flight.velocities)[:, :2], axis=1)
    assert speed.max() == pytest.approx(8.0)  # that of the cruise
    assert flight.logged == []

    flight.state = flight.runner.step(0.05, is_mode_done=True)
    assert flight.state.params.current == A


def test_an_external_vehicle_and_external_reports():
    """The pose comes from outside without a follower, and so may a report of an item's end."""
    runner = MissionRunner()
    runner.load([T, A, L])

    with pytest.raises(ValueError, match="pose: missing"):
        runner.step(0.1)
    with pytest.raises(ValueError, match="dt: 0"):
        runner.step(0, (0, 0, 0, 0))

    assert runner.step(0.1, (0, 0, 0, 0)).params.current == T
    assert runner.step(0.1, (0, 0, -19.5, 0)).params.current == A
    assert runner.step(0.1, (150, 0, -30, 0), is_mode_done=False).params.current == A
    assert runner.step(0.1, (0, 0, 0, 0), is_mode_done=True).params.current == L

    state = runner.step(0.1, (20, 30, 0, 0))
    assert state.finished
    assert state.items_done == 3


@pytest.mark.parametrize("kind", KINDS)
def test_a_return_leads_to_the_nearest_rally_point(kind):
    """The vehicle is 150 m north; home is 150 m away, the rally point 50 m."""
    flight = Flight(kind, [T, A, R], rally=[(150, 50, -30), (-80, 0, -30)]).to_end()
    flight.run(60)
    away = math.dist(flight.vehicle.position[:2], (150, 50))
    assert away < (1.0 if kind == "multirotor" else 28.0)
    if kind == "multirotor":
        assert flight.vehicle.position[2] == pytest.approx(0.0, abs=0.2)


def test_after_a_breach_it_returns_to_the_fences_own_place():
    fence = Geofence((FenceCircle((0.0, 0.0), 250.0),), (0.0, 100.0, -20.0))
    flight = Flight("multirotor", [T, A, B, C], fence=fence)
    flight.until(lambda: flight.shown[-1:] == [("WAYPOINT", 1)]).run(3)
    flight.vehicle.position = (flight.vehicle.position[0], 260.0, flight.vehicle.position[2])
    flight.run(60)
    assert math.dist(flight.vehicle.position[:2], (0.0, 100.0)) < 1.0


def test_places_to_return_to_lie_within_the_fence():
    ring = (FenceCircle((0.0, 0.0), 200.0),)
    with pytest.raises(ConfigError, match="rally point 2 breaches area 1"):
        Flight("multirotor", [T], fence=Geofence(ring), rally=[(10, 0, 0), (300, 0, 0)])
    with pytest.raises(ConfigError, match="the place to return to after a breach breaches area 1"):
        Flight("multirotor", [T], fence=Geofence(ring, (300.0, 0.0, 0.0)))


def test_a_return_is_done_on_the_ground():
    flight = Flight("multirotor", [T, A, R]).to_end()
    assert flight.vehicle.position[2] == pytest.approx(0.0, abs=0.31)

    flight = Flight("multirotor", [T, A, B])
    flight.until(lambda: len(flight.shown) == 3)
    flight.runner.command = MissionCommand.RTL
    flight.until(lambda: flight.state.returned)
    assert flight.vehicle.position[2] == pytest.approx(0.0, abs=0.31)


@pytest.mark.parametrize(
    "items", [[mavlink(93, 20)], [MissionItem.waypoint((40, 0, -30), math.nan)], []]
)
def test_who_stays_neither_turns_nor_drifts(items):
    """Braking from 8 m/s takes 8 m beyond the place: back from there it flies tail first."""
    fast = MissionItem.waypoint((40, 0, -30), math.nan, 10.0)
    flight = Flight("multirotor", [T, fast, *items])
    flight.until(lambda: len(flight.shown) == 3)
    begun = len(flight.track)
    flight.run(18)
    yaws = np.array(flight.eulers)[begun:, 2]
    assert np.abs(yaws).max() < math.radians(1.0)
    last = np.array(flight.track)[-60:]
    assert np.ptp(last, axis=0).max() < 0.05
    assert math.dist(last[-1][:2], flight.state.flown.position[:2]) < 0.05
