# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Missions on wheels and half on wheels: their ways, limits, and completion."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rfly_common.errors import ConfigError
from rfly_missions.execution.runner import MissionRunner
from rfly_missions.followers.ground import Ground
from rfly_missions.followers.ground_vehicle import GroundVehicle, GroundVehicleLimits
from rfly_missions.followers.land_air import LandAir, mode_request
from rfly_missions.mission.items import MissionCommand, MissionItem, MissionMode
from rfly_terrain.height_map.height_map import HeightMap

NAN = math.nan
DT = 0.05


@pytest.fixture(scope="module")
def hills():
    """400 m x 400 m, slopes up to 20 %."""
    axis = np.arange(-200.0, 201.0, 5.0)
    x, y = np.meshgrid(axis, axis, indexing="ij")
    heights = 6 * np.sin(x / 37) * np.cos(y / 29) + 0.03 * x
    return HeightMap(
        heights, origin_x=-200.0, origin_y=-200.0, step_x=5.0, step_y=5.0, name="hills"
    )


class Drive:
    """A vehicle on a mission, and the record of its way."""

    def __init__(self, kind, items, terrain=None, home=(0.0, 0.0), yaw=0.0, **load):
        ground = Ground(terrain)
        start = (*home, 0.0 if terrain is None else ground.down(*home))
        self.vehicle = (GroundVehicle if kind == "ground" else LandAir)(start, yaw, ground=ground)
        self.runner = MissionRunner(kind, follower=self.vehicle)
        self.runner.load(items, start, **load)

        self.track = []
        self.speeds = []
        self.courses = []
        self.shown = []
        self.modes = []
        self.distances = []

    def to_end(self, limit=300.0):
        for _ in range(int(limit / DT)):
            state = self.runner.step(DT)
            if not self.shown or self.runner.manager.state.switches != self.switches:
                self.switches = self.runner.manager.state.switches
                self.shown.append(
                    (state.params.current.mode.name, state.driven, np.array(self.vehicle.position))
                )

            self.track.append(self.vehicle.position)
            self.speeds.append(math.hypot(*self.vehicle.velocity[:2]))
            self.courses.append(self.vehicle.pose[3])
            self.distances.append(state.distance)
            if not self.modes or self.modes[-1] != self.vehicle.mode:
                self.modes.append(self.vehicle.mode)

            if state.finished:
                self.track = np.array(self.track)
                return self
        raise AssertionError(f"{self.shown} at {self.vehicle.position}")


POINTS = [(60.0, 10.0), (60.0, 60.0), (-20.0, 55.0)]
WAY = [MissionItem.waypoint((*point, -500.0), NAN, 2.0) for point in POINTS]


def test_a_car_drives_its_way_points_on_the_ground_within_its_limits(hills):
    """The heights of the items, half a kilometre up, are ignored; the terrain's count."""
    drive = Drive("ground", [*WAY, MissionItem.return_to_launch()], hills, yaw=1.0).to_end()
    assert [(mode, driven) for mode, driven, _ in drive.shown] == [("WAYPOINT", True)] * 3 + [
        ("RTL", True)
    ]

    # places and heights
    for (_, _, left_at), point in zip(drive.shown[1:], POINTS, strict=True):
        assert math.dist(left_at[:2], point) <= 2.1
    assert math.hypot(*drive.track[-1, :2]) <= 1.0
    above = np.asarray(hills.altitude_ned(drive.track[:, 0], drive.track[:, 1])) - drive.track[:, 2]
    assert above.min() >= -1e-9
    assert above.max() < 0.1  # the wheels' plane over a bump

    # limits
    limits = GroundVehicleLimits()
    speed = np.array(drive.speeds)
    assert speed.max() == pytest.approx(limits.speed, abs=1e-6)
    assert np.abs(np.diff(speed)).max() <= limits.acceleration * DT + 1e-9
    turned = np.abs(
        [
            math.remainder(b - a, 2 * math.pi)
            for a, b in zip(drive.courses, drive.courses[1:], strict=False)
        ]
    )
    way = np.hypot(*np.diff(drive.track[:, :2], axis=0).T)
    assert (turned[way > 0.02] / way[way > 0.02]).max() <= 1.001 / limits.turn_radius
    assert (turned / DT * speed[1:]).max() <= 1.05 * limits.lateral_acceleration

    assert drive.distances[0] == pytest.approx(
        math.hypot(60, 10, hills.altitude_ned(60.0, 10.0) - hills.altitude_ned(0.0, 0.0)), abs=0.2
    )


@pytest.mark.parametrize("direction", [1, -1])
def test_a_car_drives_round_as_often_as_requested(direction):
    center = np.array([60.0, 20.0])
    drive = Drive("ground", [MissionItem.orbit((*center, -30), 20.0, direction, 1.5)]).to_end()
    arm = drive.track[:, :2] - center
    distance = np.hypot(*arm.T)
    on = np.argmax(np.abs(distance - 20.0) <= 2.0)
    bearing = np.unwrap(np.arctan2(arm[on:, 1], arm[on:, 0]))
    assert direction * (bearing[-1] - bearing[0]) / (2 * math.pi) == pytest.approx(1.5, abs=0.05)
    assert np.abs(distance[on + 60 :] - 20.0).max() < 0.5


def test_a_target_within_the_turning_circle_is_reached_after_all():
    drive = Drive("ground", [MissionItem.waypoint((0.0, 4.0, 0.0), NAN)]).to_end(60.0)
    assert math.dist(drive.track[-1][:2], (0, 4)) < 1.1


def test_a_car_stops_to_hold_and_goes_on():
    drive = Drive("ground", WAY)
    for _ in range(100):
        drive.runner.step(DT)

    drive.runner.command = MissionCommand.HOLD
    held = drive.runner.step(DT).params.current
    for _ in range(100):
        state = drive.runner.step(DT)

    assert drive.vehicle.velocity[:2] == (0.0, 0.0)
    assert math.dist(drive.vehicle.position, held.position) < 6.0**2 / (2 * 2.0) + 0.5
    assert state.params.current == held

    drive.runner.command = MissionCommand.DEFAULT
    assert [mode for mode, _, _ in drive.to_end().shown] == ["WAYPOINT"] * 3 + ["HOLD"]


@pytest.mark.parametrize("item", [MissionItem.takeoff((0, 0, -9)), MissionItem.land((0, 0, 0))])
def test_what_a_car_cannot_do_is_refused_by_name(item):
    runner = MissionRunner("ground")
    with pytest.raises(
        ConfigError, match=f"mission item 1: {item.mode.name}, which a ground vehicle can't do"
    ):
        runner.load([WAY[0], item])
    with pytest.raises(
        ValueError,
        match="uav_type: 'boat', expected one of multirotor, fixed-wing, ground, land-air",
    ):
        MissionRunner("boat")


LAND_AIR = [
    MissionItem.waypoint((40, 10, -50), NAN, 2.0),
    MissionItem.takeoff((40, 10, -30)),
    MissionItem.waypoint((80, 60, -30), NAN, 2.0),
    MissionItem.land((80, 80, 0)),
    MissionItem.waypoint((20, 60, -90), NAN, 2.0),
    MissionItem.return_to_launch(),
]


@pytest.mark.parametrize("over", ["hills", "nothing"])
def test_a_land_air_vehicle_drives_flies_and_drives(hills, over):
    terrain = hills if over == "hills" else None
    drive = Drive("land-air", LAND_AIR, terrain).to_end()
    assert [driven for _, driven, _ in drive.shown] == [True, False, False, False, True, True]
    assert drive.modes == ["DRIVE", "TAKEOFF", "FLIGHT", "LAND", "DRIVE"]

    starts = [
        int(np.argmin(np.linalg.norm(drive.track - place, axis=1))) for _, _, place in drive.shown
    ]
    ground = np.zeros(len(drive.track))
    if terrain is not None:
        ground = np.asarray(hills.altitude_ned(drive.track[:, 0], drive.track[:, 1]))
    height = ground - drive.track[:, 2]

    for begin, end in ((0, starts[1]), (starts[4], len(height))):
        assert height[begin:end].min() >= -1e-9
        assert height[begin:end].max() < 0.1
    assert height[starts[2] : starts[3]].min() > 20.0
    assert np.linalg.norm(np.diff(drive.track, axis=0), axis=1).max() < 8.1 * DT
    assert math.dist(drive.shown[4][2][:2], (80, 80)) < 1.0


def test_what_begins_in_the_air_is_landed_before_it_is_driven():
    """A repeated mission, whose first item is driven, has ended in the air."""
    vehicle = LandAir((0, 0, -20), airborne=True)
    runner = MissionRunner("land-air", follower=vehicle)
    runner.load([MissionItem.waypoint((30, 0, -9), NAN, 2.0), MissionItem.takeoff((30, 0, -20))])
    for _ in range(1200):
        state = runner.step(DT)
        if state.item_index == 1:
            break
        assert vehicle.mode in ("LAND", "DRIVE", "FLIGHT")
    assert vehicle.mode == "DRIVE"
    assert vehicle.position[2] == pytest.approx(0.0, abs=0.05)


def test_the_mode_of_a_vehicle_says_when_it_flies_and_stands(hills):
    """Poses from outside: TAKEOFF is done at FLIGHT and LAND at DRIVE, whatever the pose."""
    runner = MissionRunner("land-air", ground=Ground(hills))
    runner.load(LAND_AIR)

    def step(place, mode):
        state = runner.step(DT, (*place, 0.0), mode=mode)
        return state.params.current.mode.name, state.driven

    floor = float(hills.altitude_ned(40.0, 10.0))
    assert step((0, 0, 0), "DRIVE") == ("WAYPOINT", True)
    assert runner.step(DT, (0, 0, 0, 0), mode="DRIVE").flown.position.tolist() == [40, 10, floor]
    origin = floor - 1.8  # the origin is 1.8 m above the wheels
    assert step((40, 10, origin), "DRIVE") == ("TAKEOFF", False)
    assert step((40, 10, -30), "TAKEOFF") == ("TAKEOFF", False)
    assert step((40, 10, floor - 2), "FLIGHT") == ("WAYPOINT", False)
    assert step((80, 60, floor), "FLIGHT") == ("WAYPOINT", False)
    assert step((80, 60, -30), "FLIGHT") == ("LAND", False)
    place = (80, 80, float(hills.altitude_ned(80.0, 80.0)))
    assert step(place, "LAND") == ("LAND", False)
    assert step(place, "SPOOL_DOWN") == ("LAND", False)
    assert step((70, 70, -9), "DRIVE") == ("WAYPOINT", True)


@pytest.mark.parametrize(
    ("items", "start_index", "mode", "driven"),
    [
        ([WAY[0]], 0, "DRIVE", True),
        ([WAY[0]], 0, "FLIGHT", False),
        ([WAY[0], MissionItem.land((0, 0, 0))], 0, "DRIVE", False),
        ([MissionItem.takeoff((0, 0, -9)), WAY[0]], 1, "DRIVE", False),
        ([MissionItem.land((0, 0, 0)), WAY[0]], 1, "FLIGHT", True),
        ([MissionItem.return_to_launch()], 0, "DRIVE", True),
        ([WAY[0]], 0, None, False),
    ],
)
def test_what_is_driven(items, start_index, mode, driven):
    runner = MissionRunner("multirotor")
    runner.load(items, start_index=start_index)
    assert runner.step(DT, (0, 0, 0, 0), mode=mode).driven is driven


HOLD = MissionItem(MissionMode.HOLD, (0, 0, 0))


@pytest.mark.parametrize(
    ("item", "mode", "place", "driven", "expected"),
    [
        (WAY[0], "DISARMED", (0, 0, 0), True, "arm"),
        (WAY[0], "DRIVE", (0, 0, 0), True, ""),
        (WAY[0], "DRIVE", (0, 0, 0), False, "takeoff"),
        (LAND_AIR[1], "DRIVE", (0, 0, 0), False, "takeoff"),
        (LAND_AIR[1], "DISARMED", (0, 0, 0), False, "arm"),
        (LAND_AIR[1], "TAKEOFF", (0, 0, 0), False, ""),
        (LAND_AIR[3], "FLIGHT", (80, 78, -30), False, ""),
        (LAND_AIR[3], "FLIGHT", (80, 79.5, -30), False, "land"),
        (LAND_AIR[3], "LAND", (80, 80, -3), False, ""),
        (MissionItem.return_to_launch(), "FLIGHT", (0, 0, -30), False, "land"),
        (MissionItem.return_to_launch(), "DRIVE", (0, 0, 0), True, ""),
        (HOLD, "DISARMED", (0, 0, 0), True, ""),
    ],
)
def test_what_a_land_air_vehicle_is_asked_for(item, mode, place, driven, expected):
    assert mode_request(item, mode, place, driven) == expected


def test_what_flies_ahead_waits_for_the_vehicle():
    """A guide never gets farther ahead than its lead, and orbits count by the vehicle's own way."""
    runner = MissionRunner("multirotor")
    guide = LandAir((0, 0, -20), airborne=True)
    runner.guide = guide
    runner.load([MissionItem.waypoint((100, 0, -20), NAN, 2.0)])

    for _ in range(200):
        state = runner.step(DT, (0, 0, -20, 0))  # a vehicle that does not move
    assert guide.lead <= guide.position[0] <= guide.lead + 1.0
    assert not state.finished

    place = 0.0
    for _ in range(1000):
        place += min(0.2, max(0.0, guide.position[0] - place))
        state = runner.step(DT, (place, 0, -20, 0))
        assert guide.position[0] - place <= guide.lead + 1.0
        if state.finished:
            break

    assert state.finished
    assert place > 97.9
