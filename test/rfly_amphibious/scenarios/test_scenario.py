# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Scenario files: their scenarios, their refusals with file, line and key, and mission files."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rfly_amphibious.dynamics.wind import Wind
from rfly_amphibious.scenarios.scenario import Scenario, shipped_scenarios
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.simulation.events import SWITCHED_SENSORS, Gust, RotorFails, SensorOff
from rfly_common.errors import ConfigError
from rfly_missions import MissionItem
from rfly_missions.mission.files import Mission, write_mission
from rfly_missions.mission.legs import DriveLeg, FlyLeg
from rfly_terrain import HeightMap, write_map
from rfly_terrain.world.weather import Weather

GOOD = """version: 1
vehicle: scale
start: {position_m: [1, 2], heading_deg: 90}
seed: 5
wind: {mean_mps: [1, 2, 0], gust_sigma_mps: [0.1, 0.2, 0.3]}
mission:
  items:
    - {mode: waypoint, position_m: [1, 12], speed_mps: 2}
    - {mode: takeoff, height_m: 3}
    - {mode: waypoint, position_m: [11, 12]}
    - {mode: land}
    - {mode: waypoint, position_m: [21, 12]}
events:
  - {time_s: 4, rotor_fails: 6}
  - {time_s: 2, gust: {velocity_mps: [1, 0, 0], duration_s: 2}}
end: {time_s: 60}
"""


def parse(text):
    return Scenario.parse(text.encode(), "s.yaml", "s")


def test_what_a_file_says_is_there():
    scenario = parse(GOOD)
    assert scenario.legs == (
        DriveLeg(((1.0, 12.0),), (2,)),
        FlyLeg(((1.0, 12.0, 3.0), (11.0, 12.0, 3.0)), (4.0, 4.0), lands=True),
        DriveLeg(((21.0, 12.0),), (3.0,)),
    )

    assert scenario.wind == Wind((1, 2, 0), (0.1, 0.2, 0.3), seed=5)
    assert scenario.events == (RotorFails(4.0, 5), Gust(2.0, (1.0, 0.0, 0.0), 2.0))
    expected = ((1, 2), math.pi / 2, 60.0)
    assert (scenario.start, scenario.heading, scenario.end_time) == expected
    assert (scenario.end, scenario.method, scenario.terrain) == ("mission_done", "rk4", None)
    assert scenario.with_seed(6).wind.seed == 6
    assert (scenario.weather, scenario.wind.turbulence) == (Weather(), 0.0)

    foggy = (
        "environment: {light: 0.5, visibility_m: 400, cloud_cover: 0.25, rain_mmph: 2}\nmission:"
    )
    assert parse(GOOD.replace("mission:", foggy, 1)).weather == Weather(0.5, 400.0, 0.25, 2.0)

    gusty = parse(GOOD.replace("gust_sigma_mps: [0.1, 0.2, 0.3]", "turbulence_mps: 7"))
    assert gusty.wind == Wind((1, 2, 0), seed=5, turbulence=7.0)


def test_what_stands_there_is_a_world_beside_it_and_of_its_map(tmp_path):
    wall = "version: 1\n{}objects: [{{box: [0.5, 6, 2], x: 6, y: 0}}]\n"
    (tmp_path / "wall.yaml").write_text(wall.format(""), encoding="utf-8")
    (tmp_path / "hill.yaml").write_text(wall.format("map: RollingHills\n"), encoding="utf-8")

    def among(world: str) -> Scenario:
        text = GOOD.replace("vehicle: scale", f"vehicle: scale\nworld: {world}")
        return Scenario.parse(text.encode(), "s.yaml", "s", tmp_path)

    scenario = among("wall.yaml")
    assert scenario.world is not None
    assert scenario.world.solids.vertices.min(axis=0).tolist() == [5.75, -3.0, 0.0]
    assert parse(GOOD).world is None
    with pytest.raises(
        ConfigError,
        match=r"s.yaml:3: world: 'hill' is made for the map 'RollingHills', .* level ground",
    ):
        among("hill.yaml")
    with pytest.raises(ConfigError, match=r"s.yaml:3: world: world 'atlantis': no such file"):
        among("atlantis")


def test_a_dot_in_the_name_of_a_map_is_part_of_it(tmp_path):
    """A world for Site.v1 is none for Site.v2."""
    write_map(
        np.zeros((9, 9)), tmp_path / "Site.v2", origin_x=-80, origin_y=-80, step_x=20, step_y=20
    )
    text = GOOD.replace("vehicle: scale", "vehicle: scale\nmap: Site.v2.txt\nworld: w.yaml")

    def on_map_of(name: str) -> Scenario:
        (tmp_path / "w.yaml").write_text(f"version: 1\nmap: {name}\nobjects: []\n", "utf-8")
        return Scenario.parse(text.encode(), "s.yaml", "s", tmp_path, (tmp_path,))

    assert on_map_of("Site.v2").world is not None
    with pytest.raises(ConfigError, match=r"made for the map 'Site.v1', .* the map 'Site.v2.txt'"):
        on_map_of("Site.v1")


def test_without_a_heading_it_looks_at_the_first_way_point():
    text = GOOD.replace(", heading_deg: 90", "").replace("[1, 12], speed", "[-3, 6], speed")
    assert parse(text).heading == pytest.approx(math.radians(135))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "seed: 5",
            "seeds: 5",
            "s.yaml:4: seeds: unknown key; did you mean seed? allowed: end, environment, ",
        ),
        ("seed: 5", "seed: x", "s.yaml:4: seed: 'x', expected a whole number"),
        ("vehicle: scale\n", "", "s.yaml:1: the key vehicle is missing"),
        (
            "{mode: land}",
            "{mode: hover}",
            "s.yaml:11: mission.items[3].mode: 'hover', allowed: waypoint, takeoff, land",
        ),
        (
            "takeoff, height_m: 3",
            "takeoff",
            "s.yaml:9: mission.items[1]: a takeoff needs the key height_m",
        ),
        (
            "{mode: land}",
            "{mode: land, height_m: 2}",
            "s.yaml:11: mission.items[3].height_m: a land has none: it lands on",
        ),
        (
            "12], speed_mps: 2",
            "12], height_m: 2",
            "s.yaml:8: mission.items[0]: height_m: this way-point is driven to",
        ),
        (
            "takeoff, height_m: 3",
            "land",
            "s.yaml:9: mission.items[1]: a landing on the ground; expected a take-off",
        ),
        (
            "gust_sigma",
            "turbulence_mps: 3, gust_sigma",
            "s.yaml:1: wind: turbulence is Dryden's gusts, gust_sigma",
        ),
        (
            "rotor_fails: 6",
            "rotor_fails: 7",
            "s.yaml:14: events[0].rotor_fails: rotor 7: 'scale' has rotors 1 … 6",
        ),
        (
            "rotor_fails: 6",
            "sensor_off: radar",
            "s.yaml:14: events[0].sensor_off: sensor 'radar', allowed: imu, gps, magnetometer, "
            "barometer, encoders, ",
        ),
        (
            "rotor_fails: 6",
            "sensor_off: ground_truth",
            "s.yaml:14: events[0].sensor_off: sensor 'ground_truth', allowed: imu, gps, ",
        ),
        (
            "rotor_fails: 6",
            "rotor_fails: 6, duration_s: 2",
            "s.yaml:14: events[0].duration_s: expected with sensor_off and fault only",
        ),
        (
            ", rotor_fails: 6",
            "",
            "s.yaml:14: events[0]: expected exactly one of the keys gust, rotor_fails, s",
        ),
        (
            "  items:",
            "  file: x.plan\n  items:",
            "s.yaml:6: mission: expected exactly one of the keys file, items",
        ),
        (
            "  items:\n    - {mode: waypoint, position_m: [1, 12], speed_mps: 2}",
            "  rolling: true\n  items:\n    - {mode: takeoff, height_m: 2, rolling: true}",
            "s.yaml:9: mission.items[0].rolling: the mission's own key rolling decides that",
        ),
        ("time_s: 60", "time_s: 0", "s.yaml:16: end.time_s: 0, allowed: 0.1 … 3600"),
        (
            "time_s: 60",
            "when: soon, time_s: 60",
            "s.yaml:16: end.when: 'soon', allowed: mission_done, standing_after",
        ),
        (
            "vehicle: scale",
            "vehicle: lorry",
            "s.yaml:2: vehicle: vehicle parameters 'lorry': no such file, and no shipped set of",
        ),
    ],
)
def test_what_is_refused_is_named(old, new, expected):
    assert old in GOOD
    with pytest.raises(ConfigError) as error:
        parse(GOOD.replace(old, new, 1))
    assert str(error.value).startswith(expected)


def test_a_part_that_is_off_needs_no_quotes():
    """`off` is a word in YAML 1.2, and a boolean in YAML 1.1."""
    fault = "{part: gps, kind: off}"
    plain, quoted = (
        parse(GOOD.replace("events:", f"events:\n  - {{time_s: 3, fault: {text}}}"))
        for text in (fault, fault.replace("off", "'off'"))
    )
    assert len(plain.events) == 3
    assert plain.events == quoted.events


def test_sensors_are_switched_off_and_on_again():
    events = (
        "events:\n  - {time_s: 3, sensor_off: gps, duration_s: 5}\n"
        "  - {time_s: 4, sensor_off: barometer}\n"
    )
    scenario = parse(GOOD.replace("events:\n", events))
    assert scenario.events[:2] == (SensorOff(3.0, "gps", 5.0), SensorOff(4.0, "barometer"))

    silent = [
        {outage.sensor for outage in scenario.events[:2] if outage.off(time)}
        for time in (2.999, 3.0, 4.0, 7.999, 8.0, 1e6)
    ]
    both = {"gps", "barometer"}
    last = {"barometer"}
    assert silent == [set(), {"gps"}, both, both, last, last]

    shipped = SensorParameters.load("scale").sensors()
    assert set(SWITCHED_SENSORS) == set(shipped) - {"ground_truth"}
    with pytest.raises(ConfigError, match=r"^sensor 'sonar', allowed: imu, gps"):
        replace(scenario, events=(SensorOff(0.0, "sonar"),))


def test_places_on_a_map():
    """Flights off the map and through a ridge are refused.

    A straight way 3 m above both its ends meets the hill between them.
    """
    with pytest.raises(ConfigError, match=r"^s\.yaml:1: map: .*NoSuchMap"):
        parse("map: NoSuchMap\n" + GOOD)
    on_map = "map: JacksboroFault\n" + GOOD
    with pytest.raises(
        ConfigError, match=r"^s\.yaml:4: start\.position_m: \[5000, 0\] lies off the map"
    ):
        parse(on_map.replace("[1, 2], head", "[5000, 0], head"))
    with pytest.raises(
        ConfigError, match=r"^s\.yaml:11: mission\.items\[2\]: x 11000, y 12 lies off the map"
    ):
        parse(on_map.replace("[11, 12]", "[11000, 12]"))
    # the hill that the shipped scenario drives up, flown over from side to side
    ridge = on_map.replace("[1, 2], head", "[-1074, -479], head").replace(
        "[1, 12]", "[-1070, -478]"
    )
    with pytest.raises(
        ConfigError,
        match=r"^s\.yaml:11: mission\.items\[2\]: the way there comes to -\d+\.\d m above",
    ):
        parse(ridge.replace("[11, 12]", "[-832, -382]"))


def test_shipped_scenarios_load_by_name():
    assert shipped_scenarios() == ["hills", "hop", "rotor_failure", "valley"]
    valley = Scenario.load("valley")
    assert [type(leg) for leg in valley.legs] == [DriveLeg, FlyLeg, DriveLeg]
    assert valley.terrain.name == "JacksboroFault"
    drive, flight, onward = valley.legs

    def altitude(place):
        return float(valley.terrain.altitude(*place[:2]))

    assert altitude(drive.points[-1]) > altitude(valley.start) + 10, "up a hill"
    assert (
        altitude(flight.points[1])
        < min(altitude(flight.points[0]), altitude(flight.points[-1])) - 12
    ), "a valley"
    assert altitude(onward.points[-1]) > altitude(flight.points[-1])
    with pytest.raises(
        ConfigError,
        match=r"no such file, and no shipped set of this name "
        r"\(hills, hop, rotor_failure, valley\)",
    ):
        Scenario.load("hopp")


def test_a_mission_file_is_driven_flown_and_driven(tmp_path):
    """The mission is placed with home at the start, NED.

    10 m north driven, up 5 m, 20 m east flown, landed there, 3 m north driven.
    """
    items = (
        MissionItem.waypoint((10, 0, 0)),
        MissionItem.takeoff((10, 0, -5)),
        MissionItem.waypoint((10, 20, -6)),
        MissionItem.land((10, 20, 0)),
        MissionItem.waypoint((13, 20, 0)),
    )
    write_mission(tmp_path / "m.plan", Mission(items, (47.0, 8.0, 400.0)), uav_type="land-air")

    text = (
        GOOD[: GOOD.index("mission:")]
        + "mission: {file: m.plan, fly_speed_mps: 6}\nend: {time_s: 60}\n"
    )
    first, flight, last = Scenario.parse(text.encode(), "s.yaml", "s", tmp_path).legs

    assert first.points[0] == pytest.approx((1, 12), abs=1e-5)
    assert flight.points == (
        pytest.approx((1, 12, 5), abs=1e-4),
        pytest.approx((21, 12, 6), abs=1e-4),
    )
    assert (flight.speeds, flight.lands) == ((6, 6), True)
    assert last.points[0] == pytest.approx((21, 15), abs=1e-5)


def test_a_mission_file_over_a_map_lies_where_its_home_does(tmp_path):
    origin = HeightMap.load("JacksboroFault").geo_origin
    write_mission(tmp_path / "m.waypoints", Mission((MissionItem.waypoint((30, 40, 0)),), origin))
    text = (
        "version: 1\nvehicle: scale\nmap: JacksboroFault\nmission: {file: m.waypoints}\n"
        "end: {time_s: 60}\n"
    )
    scenario = Scenario.parse(text.encode(), "s.yaml", "s", tmp_path)
    assert scenario.start == pytest.approx((0, 0), abs=1e-6)
    assert scenario.legs[0].points[0] == pytest.approx((40, 30), abs=1e-3)
    assert scenario.heading == pytest.approx(math.atan2(30, 40), abs=1e-4)


def test_what_no_land_air_vehicle_does_is_refused_by_name(tmp_path):
    mission = Mission(
        (MissionItem.takeoff((0, 0, -5)), MissionItem.orbit((0, 0, -5), 10.0)), (47.0, 8.0, 400.0)
    )
    write_mission(tmp_path / "m.plan", mission)
    text = "version: 1\nvehicle: scale\nmission: {file: m.plan}\nend: {time_s: 60}\n"
    with pytest.raises(
        ConfigError,
        match=r"s\.yaml:3: mission\.file: .*m\.plan: item 1: ORBIT; expected TAKEOFF, WAYPOINT",
    ):
        Scenario.parse(text.encode(), "s.yaml", "s", tmp_path)
    with pytest.raises(ConfigError, match=r"^s\.yaml:3: mission\.file: missing\.plan: No such"):
        Scenario.parse(text.replace("m.plan", "missing.plan").encode(), "s.yaml", "s", tmp_path)


def test_the_scenario_of_the_page_is_one():
    page = Path(__file__).parents[3] / "docs" / "howto" / "run-a-scenario.md"
    text = re.search(
        r"^```yaml\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    ).group(1)
    scenario = parse(text)
    assert [type(leg) for leg in scenario.legs] == [DriveLeg, FlyLeg]
    assert scenario.events == (Gust(12.0, (0.0, 4.0, 0.0), 2.0),)
