# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Fleets whose vehicles keep clear of each other after small changes."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from marks import exhaustively
from scipy.spatial.distance import pdist

from rfly_common.errors import ConfigError
from rfly_trajectory.fleet import deconflict as deconflict_module
from rfly_trajectory.fleet.deconflict import AllowedChange, Change, deconflict
from rfly_trajectory.fleet.fleet import Fleet, Vehicle
from rfly_trajectory.fleet.fleet_file import FleetFile, load_fleet
from rfly_trajectory.fleet.limit_check import LimitViolation, check_separation
from rfly_trajectory.motion.speed_profile import SpeedProfile
from rfly_trajectory.paths.shapes import Circle, Line

SAME = Change()


def car(name, start, end, *, speed=8.0, **keys):
    path = Line(start, end).path()
    number = sum(map(ord, name))
    return Vehicle(name, number, 3, path, SpeedProfile(speed), "stop", **keys)


EAST = car("east", (-100.0, 0.0), (100.0, 0.0))
NORTH = car("north", (0.0, -100.0), (0.0, 100.0))


def test_who_crosses_departs_later():
    """A vehicle τ late passes the other at 8 τ / √2, both at 8 m/s: 1 s gives 5.7 m."""
    found = deconflict(Fleet([EAST, NORTH], min_separation=3.0), [1, 1])
    assert found.changes == [SAME, Change(later=1.0)]
    assert [vehicle.delay for vehicle in found.fleet.vehicles] == [0.0, 1.0]
    found = deconflict(Fleet([EAST, NORTH], min_separation=6.0), [1, 1])
    assert found.changes == [SAME, Change(later=2.0)]
    assert deconflict(found.fleet, [1, 1]).changes == [SAME, SAME], "nothing is left to change"


def test_who_may_not_wait_goes_slower():
    """A share s of the speed makes it 100 (1 - s) m late: it passes at that over √(1 + s²).

    7.4 m at 0.9, 15.6 m at 0.8.
    """
    fleet = Fleet([EAST, NORTH], min_separation=8.0)
    found = deconflict(fleet, [1, 1], allowed=AllowedChange(later=0.0))
    assert found.changes == [SAME, Change(share=0.8)]
    assert found.fleet.vehicles[1].profile.cruise == pytest.approx(6.4)


@pytest.mark.parametrize(("absolute", "height"), [(False, 10.0), (True, 55.0)])
def test_aircraft_that_meet_head_on_fly_above_each_other(absolute, height):
    def drone(name, number, clockwise):
        path = Circle((0.0, 0.0), 40.0, clockwise=clockwise).path()
        motion = SpeedProfile(8.0)
        keys = {"kind": "multirotor", "height": height, "absolute": absolute}
        return Vehicle(name, number, 5, path, motion, "repeat", phase=30.0, **keys)

    fleet = Fleet([drone("one", 1, False), drone("other", 2, True)])
    found = deconflict(fleet, [1, 1], radii=(0.5, 0.7))
    assert found.changes == [SAME, Change(higher=1.4)], "above by the wider one's diameter"
    low = deconflict(fleet, [1, 1], (0.5, 0.7), AllowedChange(higher=1.3))
    assert low.stuck in ("one", "other")
    assert low.fleet is fleet


def test_who_can_not_get_out_of_the_way_goes_first():
    """A car waits until 6 s where the other one arrives after 4 s: the other one has to be late.

    If it departs d later, the two pass at (5 d - 10) / √2 m: 3 m need 2.85 s.
    """
    through = car("through", (-20.0, 0.0), (80.0, 0.0), speed=5.0)
    waits = car("waits", (0.0, 0.0), (0.0, 90.0), speed=5.0, delay=6.0)
    found = deconflict(Fleet([through, waits], min_separation=3.0), [1, 1])
    assert found.changes == [Change(later=3.0), SAME]


def test_copies_depart_at_longer_intervals():
    """Cars 0.2 s after each other are 1.6 m apart; 5 m need 0.625 s."""
    path = Circle((0.0, 0.0), 60.0).path()
    copies = [
        Vehicle(f"car_{i}", i, 3, path, SpeedProfile(8.0), "repeat", delay=0.2 * i)
        for i in range(3)
    ]
    found = deconflict(Fleet(copies, min_separation=5.0), [3])
    assert found.changes == [Change(between=1.0)]
    assert [v.delay for v in found.fleet.vehicles] == pytest.approx([0.0, 1.2, 2.4])


def test_what_can_not_be_is_said():
    """Cars that face each other on one line, and a group whose copies end at one place."""
    back = car("back", (100.0, 0.0), (-100.0, 0.0))
    found = deconflict(Fleet([EAST, back], min_separation=3.0), [1, 1])
    assert found.stuck == "back"
    assert found.changes == [SAME, SAME]

    second = dataclasses.replace(EAST, name="second", id=2, delay=1.0)
    assert deconflict(Fleet([EAST, second], min_separation=3.0), [2]).stuck == "east"


def test_what_the_check_still_finds_is_no_success(monkeypatch):
    """The search looks at instants; the check, which refines them, has the last word."""
    near = LimitViolation("north", "comes within 2.9 m of 'east' after 13.0 s")
    monkeypatch.setattr(deconflict_module, "check_separation", lambda *_, **__: [near])
    fleet = Fleet([EAST, NORTH], min_separation=3.0)
    assert deconflict(fleet, [1, 1]) == (fleet, [SAME, SAME], "north")


@pytest.mark.parametrize(
    ("groups", "allowed", "expected"),
    [
        ([1], {}, "groups of 1 vehicles, expected the fleet's 2"),
        ([2, 0], {}, "expected the fleet's 2"),
        ([2], {"later": math.nan}, "later: is not within 0 … 3600"),
        ([2], {"higher": -1.0}, "higher: is not within 0 … 10000"),
        ([2], {"share": 0.0}, r"share: is not within 0\.1 … 1"),
    ],
)
def test_what_makes_no_sense_is_refused(groups, allowed, expected):
    with pytest.raises(ConfigError, match=expected):
        deconflict(Fleet([EAST, NORTH]), groups, 1.0, AllowedChange(**allowed))


@pytest.mark.parametrize("seed", [1, *(exhaustively(seed) for seed in range(2, 8))])
def test_a_crowd_keeps_clear_as_dense_sampling_shows(seed):
    """Cars and drones cross the same square; each tenth of a second all are 3 m apart."""
    rng = np.random.default_rng(seed)
    # nobody starts or ends where another one does
    places = 15.0 * np.array(np.divmod(rng.permutation(100)[:60], 10), float).T
    vehicles = []
    for i in range(30):
        start, end = places[2 * i : 2 * i + 2].tolist()
        kind = ("ground", "multirotor")[i % 2]
        keys = {"kind": kind, "height": 10.0 * (i % 2), "speed": rng.uniform(4.0, 10.0)}
        vehicles.append(dataclasses.replace(car("any", start, end, **keys), name=f"v{i}", id=i))
    fleet = Fleet(vehicles, min_separation=3.0)
    assert check_separation(fleet)

    found = deconflict(fleet, [1] * 30)
    assert found.stuck == ""
    end = max(v.delay + v.path.length / v.profile.cruise for v in found.fleet.vehicles)
    for instant in found.fleet.sample_times(np.arange(0.0, end + 1.0, 0.1)).position:
        assert pdist(instant).min() >= 3.0 * (1.0 - 1e-6)


FILE = """version: 1
min_separation: 3.0
defaults: {kind: ground, type: car_blue, speed: {cruise: 8.0, acceleration: 4.0}, count: 2}
vehicles:
  - {name: east, id: 1, count: 1, shape: {type: polyline, file: way.csv}}
  - {name: north, id: 10, delay: 0.5, shape: {type: circle, center: [0, 0], radius: 40}}
  - id: 20
    kind: multirotor
    type: 5
    count: 1
    altitude: {agl: 7}
    shape: {type: line, from: [0, -9], to: [0, 9]}
"""


def test_a_changed_file_is_the_changed_fleet(tmp_path, monkeypatch):
    """A written fleet is read as the same fleet, from another folder too."""
    (tmp_path / "way.csv").write_text("x,y\n-100,0\n100,0\n", encoding="utf-8")
    (tmp_path / "fleet.yaml").write_text(FILE, encoding="utf-8")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    given = FleetFile("fleet.yaml")
    assert given.groups == [1, 2, 1]
    assert [name for name, _ in given.entries()] == ["east", "north", "vehicle_20"]

    changes = [Change(later=2.0, share=0.5), Change(between=3.0, later=1.0), Change(higher=4.5)]
    written = tmp_path / "elsewhere" / "changed.yaml"
    written.write_text(given.changed(changes), encoding="utf-8")
    east, first, second, drone = load_fleet(written).vehicles
    assert (east.delay, east.profile) == (2.0, SpeedProfile(4.0, 4.0))
    assert (first.delay, second.delay) == (1.0, 4.5)
    assert (drone.height, drone.absolute) == (11.5, False)

    written.write_text(given.changed([SAME] * 3), encoding="utf-8")
    for same, before in zip(load_fleet(written).vehicles, given.fleet.vehicles, strict=True):
        assert same.schedule == before.schedule
        assert (same.name, same.id, same.delay) == (before.name, before.id, before.delay)
