# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Runs of scenarios against numbers worked out by hand.

Ways, energy, touchdown, order of modes, and endings.
"""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
from marks import exhaustively
from recorded_runs import shipped_run

from rfly_amphibious.dynamics.model import AmphibiousModel, Controls, ModelState, Outputs
from rfly_amphibious.dynamics.stepper import Stepper
from rfly_amphibious.dynamics.wind import Wind
from rfly_amphibious.scenarios.scenario import Scenario
from rfly_amphibious.simulation.commands import Mode
from rfly_amphibious.simulation.events import Gust
from rfly_amphibious.vehicle import state_layout
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.attitude_controller import Mixer
from rfly_common.physics import GRAVITY
from rfly_lab.runs.closed_loop import run_closed_loop
from rfly_lab.runs.recorder import RunRecorder, Touchdown
from rfly_lab.runs.run import MissionPilot, run_scenario
from rfly_lab.runs.table_log import write_csv

FLIGHT = [Mode.DRIVE, Mode.TAKEOFF, Mode.FLIGHT, Mode.LAND, Mode.SPOOL_DOWN, Mode.DRIVE]
UP_AND_DOWN = """version: 1
vehicle: {vehicle}
seed: 3
method: semi_implicit_euler
wind: {{mean_mps: [1, 0, 0], gust_sigma_mps: [0.5, 0.5, 0.1]}}
mission: {{items: [{{mode: takeoff, height_m: {height}}}, {{mode: land}}]}}
events: [{events}]
end: {{when: {when}, time_s: {time}}}
"""
DRIVE = """version: 1
vehicle: scale
method: semi_implicit_euler
mission: {{drive_speed_mps: 4, items: [{items}]}}
end: {{when: {when}, time_s: {time}}}
"""


def up_and_down(vehicle="scale", events="", when="mission_done", time=40, height=3):
    text = UP_AND_DOWN.format(vehicle=vehicle, events=events, when=when, time=time, height=height)
    return Scenario.parse(text.encode(), "s.yaml")


def drive(*places, when="mission_done", time=60):
    items = ", ".join(f"{{mode: waypoint, position_m: [{x}, {y}]}}" for x, y in places)
    return Scenario.parse(DRIVE.format(items=items, when=when, time=time).encode(), "s.yaml")


@pytest.fixture(scope="module")
def hop():
    return shipped_run("hop")


def test_the_modes_come_in_the_order_of_the_table(hop):
    assert [mode for _, mode in hop.modes] == FLIGHT
    times = [time for time, _ in hop.modes]
    assert times == sorted(times)
    assert hop.reached
    assert hop.ending.startswith("mission done at")


def test_way_points_are_passed_and_the_last_one_is_stood_at(hop):
    """Corners are cut by at most half of the preview, two wheelbases."""
    params = hop.scenario.params
    for place in ((8, 0), (14, 3), (30, 8)):
        distance = np.linalg.norm(hop.position[:, :2] - place, axis=1).min()
        assert distance < params.wheelbase, place
    assert np.linalg.norm(hop.final.position[:2] - (30, 8)) < 0.4
    assert np.linalg.norm(hop.final.velocity) < 0.05


def test_the_landing_is_where_and_as_soft_as_wanted(hop):
    (touchdown,) = hop.touchdowns
    assert 0.2 < touchdown.sink_speed < 0.6
    assert touchdown.level_speed < 0.2
    assert np.linalg.norm(np.subtract(touchdown.position[:2], (22, 8))) < 0.7


def test_ways_and_energy_fit_what_can_be_worked_out(hop):
    """Ways and energy lie within bounds.

    Driven: 8 + √45 and about 8 m; flown: about √89 across, 3 up, 3 down. The rotors do more than m
    g h, and less than twice the ideal power of hovering, T √(T / 2ρA) with all losses of a figure
    of merit of 0.65, all the time.
    """
    params = hop.scenario.params
    driven, flown = hop.distances()
    expected = 8 + np.sqrt(45) + 8
    assert driven == pytest.approx(expected, abs=1.5)
    assert flown == pytest.approx(np.sqrt(89) + 6, abs=1.5)
    weight = params.mass * GRAVITY
    area = params.rotors * np.pi * params.rotor_radius**2
    hovering = weight * np.sqrt(weight / (2 * 1.225 * area)) / 0.65
    airborne = float(np.sum(~hop.on_wheels) * 0.02)
    assert weight * 3.0 < hop.rotor_energy
    assert 0.9 * hovering * airborne < hop.rotor_energy < 1.4 * hovering * airborne
    rolling = params.rolling_resistance * weight * driven
    assert rolling < hop.wheel_energy < 6 * rolling


def test_samples_come_every_20_ms_and_are_written(hop, tmp_path):
    assert np.allclose(np.diff(hop.time[:-1]), 0.02)

    write_csv(hop, tmp_path / "run.csv")
    table = np.genfromtxt(
        tmp_path / "run.csv", delimiter=",", names=True, dtype=None, encoding="utf-8"
    )
    assert len(table) == len(hop.time)
    assert np.allclose(table["position_z_m"], hop.position[:, 2], rtol=1e-8)
    assert np.allclose(table["rotor_power_w"], hop.outputs.rotor_power, rtol=1e-8)

    assert list(dict.fromkeys(table["mode"])) == [
        "DRIVE",
        "TAKEOFF",
        "FLIGHT",
        "LAND",
        "SPOOL_DOWN",
    ]

    assert np.allclose(table["wheel_load_fl_n"][0], hop.scenario.params.static_load[0], rtol=0.05)
    assert np.allclose(table["wheel_load_rr_n"], hop.outputs.wheel_load[:, 3], rtol=1e-8)
    assert np.allclose(table["wind_y_mps"], hop.wind[:, 1], rtol=1e-8)


def test_a_mode_shows_from_the_sample_after_its_begin(hop, tmp_path):
    write_csv(hop, tmp_path / "run.csv")
    lines = (tmp_path / "run.csv").read_text(encoding="utf-8").splitlines()[1:]
    modes = np.array([line.split(",")[0] for line in lines])
    takeoff = {mode.value: time for time, mode in hop.modes}["TAKEOFF"]
    assert set(modes[hop.time <= takeoff]) == {"DRIVE"}
    assert modes[hop.time > takeoff][0] == "TAKEOFF"


def test_the_same_scenario_gives_the_same_bits_and_another_seed_others():
    scenario = up_and_down(time=5, when="time")
    one = run_scenario(scenario)
    two = run_scenario(scenario)
    assert one.reached
    assert one.x.tobytes() == two.x.tobytes()
    assert one.outputs.numbers.tobytes() == two.outputs.numbers.tobytes()
    assert one.fingerprint() == two.fingerprint()
    assert re.fullmatch("[0-9a-f]{16}", one.fingerprint())
    other = run_scenario(scenario.with_seed(4))
    assert np.abs(other.wind - one.wind).max() > 0.1
    assert other.x.tobytes() != one.x.tobytes()
    assert other.fingerprint() != one.fingerprint()


def test_the_last_bit_of_each_part_is_in_the_fingerprint_of_a_run(hop):
    """A part is a field of the run; the scenario is what was asked for, not what came out."""

    def nudged(value):
        if isinstance(value, np.ndarray):
            value = value.copy()
            value.reshape(-1)[-1] = np.nextafter(value.reshape(-1)[-1], 1e9)
            return value
        if isinstance(value, Outputs):
            return Outputs(nudged(value.numbers), hop.scenario.params.rotors)
        if isinstance(value, ModelState):
            return ModelState(value.x, nudged(value.memory), value.time)
        if isinstance(value, Touchdown):
            return dataclasses.replace(value, sink_speed=np.nextafter(value.sink_speed, 1e9))
        if isinstance(value, tuple):
            return (*value[:-1], nudged(value[-1]))
        if isinstance(value, float):
            return float(np.nextafter(value, 1e9))
        return Mode.ABORT if isinstance(value, Mode) else f"{value}."

    hop = dataclasses.replace(hop, log=((1.0, "something"),))
    before = hop.fingerprint()
    parts = {field.name for field in dataclasses.fields(hop)} - {"scenario", "reached"}
    for part in parts:
        other = dataclasses.replace(hop, **{part: nudged(getattr(hop, part))})
        assert other.fingerprint() != before, part
    assert hop.fingerprint() == before


def test_the_stepper_steps_as_the_model_does():
    params = VehicleParameters.load("scale")
    model = AmphibiousModel(params)
    controls = Controls(
        rotor_speed=0.9 * params.hover_speed,
        steering=0.1,
        drive_torque=2.0,
        brake_torque=(0, 0, 1, 1),
    )

    wind = Wind((1.0, -2.0, 0.0), (1.0, 1.0, 0.5), seed=9)
    state = model.standing(speed=2.0)
    stepper = Stepper(model, state, 60, 0.001, wind)

    for steps in (7, 13, 40):
        stepper.advance(controls, steps)
        state = model.step(state, controls, steps=steps, wind=wind)
        assert np.array_equal(stepper.state.x, state.x)
        assert np.array_equal(stepper.state.memory, state.memory)
    assert stepper.state.time == pytest.approx(0.06)


def test_a_turn_back_is_driven():
    """A corner of 180° is tighter than the vehicle turns.

    It loops and comes back to the last way-point.
    """
    run = run_scenario(drive((10, 0), (2, 0.5)))
    assert run.reached, run.ending
    assert np.linalg.norm(run.final.position[:2] - (2, 0.5)) < 0.5
    assert run.position[:, 0].max() > 9.5


def test_time_as_an_end_and_time_that_is_too_short():
    assert run_scenario(drive((30, 0), when="time", time=1)).ending == "time is up at 1.00 s"
    short = run_scenario(drive((30, 0), time=1))
    assert (short.reached, short.ending) == (
        False,
        "not reached: mission_done; time is up at 1.00 s",
    )


def test_a_gust_swells_and_dies_away():
    """A gust is ½ (1 − cos): nothing at both ends, all in the middle, half at a quarter."""
    gust = Gust(2.0, (4.0, 0.0, 0.0), 4.0)
    assert [gust.strength(t) for t in (1.9, 2.0, 3.0, 4.0, 5.0, 6.0)] == pytest.approx(
        [0, 0, 0.5, 1, 0.5, 0]
    )

    text = "{time_s: 0.5, gust: {velocity_mps: [0, 6, 0], duration_s: 1}}"
    calm = run_scenario(up_and_down(time=2, when="time"))
    blown = run_scenario(up_and_down(time=2, when="time", events=text))

    more = blown.wind - calm.wind
    assert more[:, 1].max() == pytest.approx(6.0, abs=0.01)
    assert more[calm.time < 0.5].any() == more[calm.time > 1.52].any() == False  # noqa: E712
    assert (
        blown.outputs.tyre_force_y.sum(axis=1).min()
        < calm.outputs.tyre_force_y.sum(axis=1).min() - 2.0
    )


def test_a_silent_sensor_is_told_and_moves_nothing_where_the_pilot_sees_the_truth():
    """The event is for runs with sensors.

    Here the numbers stay the same, bit by bit, and the run says so.
    """
    calm = run_scenario(drive((4, 0)))
    text = (
        "{time_s: 0.5, sensor_off: gps, duration_s: 1}, {time_s: 1, sensor_off: imu}, "
        "{time_s: 600, sensor_off: wind}"
    )

    quiet = run_scenario(
        Scenario.parse(
            DRIVE.format(items="{mode: waypoint, position_m: [4, 0]}", when="mission_done", time=60)
            .replace("end:", f"events: [{text}]\nend:")
            .encode(),
            "s.yaml",
        )
    )

    assert [(time, what) for time, what in quiet.log if "is off" in what] == [
        (0.5, "gps is off for 1 s: no effect, this pilot sees the truth"),
        (1.0, "imu is off: no effect, this pilot sees the truth"),
    ]
    assert quiet.x.tobytes() == calm.x.tobytes()


@pytest.mark.parametrize(
    ("sink", "forward", "ring", "expected"),
    [
        (1.5, 0.0, 0.0, ""),
        (5.0, 0.0, 0.0, "sinks at 5.0 m/s: the vortex-ring state is left out"),
        (5.0, 0.0, 1.0, ""),
        (5.0, 8.0, 0.0, ""),
        (14.0, 0.0, 0.0, "sinks at 14.0 m/s: the air drives its rotors"),
        (14.0, 8.0, 1.0, "sinks at 14.0 m/s: the air drives its rotors"),
    ],
)
def test_a_descent_that_the_rotors_equations_leave_out_is_told_once(sink, forward, ring, expected):
    """Compare with the 7.11 m/s that the rotors induce in hover.

    At 14 m/s thrust is 1.5 of that at rest, and momentum theory ends at 1.5 √1.5 · 7.11 = 13.1 m/s.
    """
    scenario = up_and_down()
    scenario = dataclasses.replace(
        scenario, params=scenario.params.replace(vortex_ring=ring), wind=Wind()
    )
    model = AmphibiousModel(scenario.params, ground_effect=False)
    state = model.flying((0.0, 0.0, 50.0), velocity=(forward, 0.0, -sink))
    outputs = model.outputs(state, Controls(rotor_speed=scenario.params.hover_speed))
    recorder = RunRecorder(scenario)
    for _ in range(3):
        recorder.watch(state, outputs, 0.004)

    told = [text for _, text in recorder.log]
    assert len(told) == (1 if expected else 0)
    assert not told or told[0].startswith(expected)


@pytest.mark.parametrize("rotor", [1, exhaustively(4)])
def test_a_failed_rotor_of_six_ends_on_the_wheels(rotor):
    run = run_scenario(
        up_and_down(events=f"{{time_s: 5, rotor_fails: {rotor}}}", when="standing_after_landing")
    )
    assert run.reached, run.ending
    assert [mode for _, mode in run.modes] == [Mode.DRIVE, Mode.TAKEOFF, Mode.FLIGHT, Mode.ABORT]
    assert (5.0, f"rotor {rotor} fails") in run.log
    assert run.x[-1, state_layout.ROTOR_SPEED + rotor - 1] < 1e-3
    assert run.touchdowns[0].sink_speed < 0.7
    assert (run.outputs.wheel_load[-1] > 0).all()


def test_the_rotor_fails_whether_the_pilot_knows_or_not(monkeypatch):
    monkeypatch.setattr(MissionPilot, "lose_rotor", lambda self, rotor: None)
    run = run_scenario(up_and_down(events="{time_s: 4, rotor_fails: 2}", when="time", time=4.5))
    assert run.x[run.time > 4.45, state_layout.ROTOR_SPEED + 1].max() < 1.0
    assert Mode.ABORT not in [mode for _, mode in run.modes]


def test_a_mission_that_a_failure_ended_is_not_reached():
    run = run_scenario(up_and_down(events="{time_s: 5, rotor_fails: 2}"))
    assert not run.reached
    assert run.ending.startswith(
        "not reached: mission_done; the flight was aborted, it stands after landing at "
    )
    early = run_scenario(up_and_down(events="{time_s: 0, rotor_fails: 2}"))
    assert (early.reached, early.ending) == (
        False,
        "not reached: mission_done; no take-off: rotor 2 failed",
    )


def test_a_failed_rotor_of_four_ends_on_the_wheels_too():
    """The rotor opposite has to stand still too.

    Two rotors carry what they can; the vehicle spins and sinks.
    """
    events = "{time_s: 5, rotor_fails: 1}"
    run = run_scenario(up_and_down("scale_quad", events, "standing_after_landing", 20))
    assert run.reached, run.ending
    assert run.x[:, state_layout.RATES + 2].max() > 3.0
    two = 2 * run.scenario.params.thrust_coefficient * run.scenario.params.max_rotor_speed**2
    assert two < run.scenario.params.mass * GRAVITY, "so it can't but sink"
    assert 0.5 < run.touchdowns[0].sink_speed < 3.0


@pytest.mark.exhaustive
def test_three_failed_rotors_side_by_side_end_in_a_crash():
    """A fall from 12 m turns the vehicle over.

    The other three rotors push on one side only.
    """
    events = ", ".join(f"{{time_s: 9, rotor_fails: {rotor}}}" for rotor in (1, 2, 3))
    run = run_scenario(up_and_down(events=events, when="crashed", time=14, height=20))
    assert run.reached, run.ending
    assert run.ending.startswith("crashed at ")
    assert run.final.crashed
    lost = run_scenario(up_and_down(events=events, time=14, height=20))
    assert (lost.reached, lost.ending) == (False, run.ending)


@pytest.mark.needs("matplotlib")
def test_a_run_says_which_part_a_wall_broke(tmp_path):
    """The vehicle drives at 5 m/s against a wall unknown to its pilot, and breaks; the picture
    shows it.
    """
    import cv2

    from rfly_lab.runs.plot import draw_run

    wall = "{box: [0.5, 9, 4], x: 12, y: 0, class: wall, color: [255, 0, 255]}"
    (tmp_path / "wall.yaml").write_text(f"version: 1\nobjects: [{wall}]\n", encoding="utf-8")
    text = """version: 1
vehicle: scale
world: wall.yaml
mission: {items: [{mode: waypoint, position_m: [30, 0], speed_mps: 5}]}
end: {when: mission_done, time_s: 20}
"""

    run = run_scenario(Scenario.parse(text.encode(), "s.yaml", "s", tmp_path))
    assert not run.reached
    assert re.fullmatch(
        r"crashed at \d\.\d\d s in mode DRIVE: the hull hit something; "
        r"nearest is object 0 \(wall\) at x 12\.0, y 0\.0 m",
        run.ending,
    ), run.ending
    assert run.position[:, 0].max() < 11.75

    draw_run(run, tmp_path / "wall.png")
    assert (cv2.imread(str(tmp_path / "wall.png")) == (255, 0, 255)).all(axis=2).sum() > 500


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "seed",
    [None, 1],
    ids=["truth", "estimate 1"],
)
def test_a_vehicle_that_pushes_against_a_wall_gives_up(tmp_path, seed):
    """It drives slowly enough to stay whole, into a wall across its way 6 m ahead.

    It is there after about 6 s, backs off 10 s later, tries the wall on both sides, gives up, and
    stands.
    """
    wall = "{box: [0.5, 30, 4], x: 6, y: 0}"
    (tmp_path / "wall.yaml").write_text(f"version: 1\nobjects: [{wall}]\n", encoding="utf-8")
    text = """version: 1
vehicle: scale
world: wall.yaml
mission: {items: [{mode: waypoint, position_m: [30, 0], speed_mps: 1}]}
method: semi_implicit_euler
end: {when: mission_done, time_s: 100}
"""
    scenario = Scenario.parse(text.encode(), "s.yaml", "s", tmp_path)
    estimated = seed is not None
    run = run_closed_loop(scenario.with_seed(seed)).run if estimated else run_scenario(scenario)

    assert not run.reached
    assert run.ending == (
        "not reached: mission_done; stuck: it was to drive 10 m and stayed within 1 m for 10 s"
    )
    assert "gives up: stuck: it was to drive 10 m" in run.log[-1][1]
    assert sum("goes back and round the place" in text for _, text in run.log) == 2
    assert 45.0 < run.duration < 75.0
    assert 4.5 < run.final.position[0] < 5.75
    assert not run.final.crashed


def test_rotors_that_are_left_carry_weight_and_moments():
    """One rotor of six is gone: the thrusts are those worked out by hand.

    The rotor opposite stands still, and the others carry W/4 each: no roll, pitch or yaw moment.
    """
    params = VehicleParameters.load("scale")
    mixer = Mixer(params, (0,))
    weight = params.mass * GRAVITY
    speeds = mixer.rotor_speeds((weight, 0, 0, 0))
    assert speeds**2 * params.thrust_coefficient / weight == pytest.approx(
        [0, 0.25, 0.25, 0, 0.25, 0.25], abs=1e-9
    )

    wrench = np.array((weight, 3.0, -4.0, 0.0))
    speeds = mixer.rotor_speeds(wrench)
    assert speeds[0] == 0.0
    assert Mixer(params).wrench(speeds)[:3] == pytest.approx(wrench[:3], rel=1e-9)


def test_a_slope_too_steep_is_told_before_the_take_off():
    scenario = Scenario.load("valley")
    text = (
        "version: 1\nmap: JacksboroFault\nvehicle: scale\nstart: {position_m: [-1092.7, -486.4]}\n"
        "mission: {items: [{mode: takeoff, height_m: 3}, {mode: land}]}\nend: {time_s: 30}\n"
    )
    assert np.degrees(scenario.terrain.slope(-1092.7, -486.4)) > 10.0
    run = run_scenario(Scenario.parse(text.encode(), "s.yaml"))
    assert not run.reached
    # it leans downhill on its struts and tyres, by 1°
    assert "no take-off: the slope is 11." in run.ending
    assert run.duration < 5.0


@pytest.mark.parametrize("name", ["hills", "hop", "rotor_failure", "valley"])
def test_two_vehicles_may_take_off_where_a_shipped_scenario_starts(name):
    """`rfly up amphibious --count 2` puts them 8 m apart; 1° is for the estimate."""
    scenario = Scenario.load(name)
    model = scenario.model()
    ahead = np.array((np.cos(scenario.heading), np.sin(scenario.heading)))
    for number in range(2):
        x, y = np.array(scenario.start) - 8.0 * number * ahead
        qx, qy, _, _ = model.standing(x, y, scenario.heading).orientation
        assert np.degrees(np.arccos(1.0 - 2.0 * (qx**2 + qy**2))) < 9.0


@pytest.mark.parametrize(
    ("when", "aborted", "level_speed", "reached"),
    [
        ("mission_done", False, 0.9, True),
        ("mission_done", False, 2.8, False),
        ("standing_after_landing", False, 1.1, False),
        ("standing_after_landing", True, 1.8, True),
        ("standing_after_landing", True, 2.8, False),
        ("time", False, 2.8, True),
    ],
)
def test_a_vehicle_that_touches_down_sideways_has_not_reached_its_end(
    when, aborted, level_speed, reached
):
    scenario = up_and_down(when=when)
    model = scenario.model()
    stands = model.standing(0.0)
    slides = ModelState(stands.x.copy(), stands.memory, stands.time)
    slides.x[state_layout.VELOCITY + 1] = level_speed
    recorder = RunRecorder(scenario)

    # it flies, lands, comes to rest
    weight = scenario.params.mass * GRAVITY
    outputs = model.outputs(stands)
    outputs.wheel_load[:] = weight / len(outputs.wheel_load)
    recorder.enter(1.0, Mode.FLIGHT)
    recorder.watch(stands, outputs, 0.1)
    recorder.enter(2.0, Mode.ABORT if aborted else Mode.LAND)
    recorder.watch(slides, outputs, 0.1)
    ending = recorder.end(stands, outputs, True, "", when == "time")

    assert ending[0] is reached, ending
    if not reached:
        assert f"{level_speed:.2f} m/s across the ground, allowed: at most" in ending[1]


@pytest.mark.exhaustive
@pytest.mark.slow
def test_the_valley_is_crossed():
    """The way leads up a hill, across a valley, down on the other side and on."""
    run = shipped_run("valley")
    assert run.reached, run.ending
    assert [mode for _, mode in run.modes] == FLIGHT

    terrain = run.scenario.terrain
    places = run.position
    ground = terrain.altitude(places[:, 0], places[:, 1])
    flown = ~run.on_wheels
    assert (places[:, 2] - ground)[flown].max() > 15.0

    weight = run.scenario.params.mass * GRAVITY
    assert run.rotor_energy > weight * (places[flown, 2].max() - ground[flown][0])
    assert run.wheel_energy > weight * (ground[flown][0] - ground[0])

    (touchdown,) = run.touchdowns
    assert 0.2 < touchdown.sink_speed < 0.7
    assert np.linalg.norm(np.subtract(touchdown.position[:2], (-665, -316))) < 1.0
    assert np.linalg.norm(run.final.position[:2] - (-620, -290)) < 0.5


@pytest.mark.exhaustive
def test_a_car_of_the_scenario_s_world_comes_towards_it_and_pushes_it_back(tmp_path):
    """A car of the world comes towards the vehicle and pushes it back.

    Its front comes from 10 m at 0.8 m/s: at 8 s it is at 3.6 m, where the vehicle alone would be 7
    m ahead.
    """
    car = "{box: [4, 1.8, 1.4], speed: 0.8, path: [[12, 0], [-30, 0]]}"
    (tmp_path / "road.yaml").write_text(
        f"version: 1\nobjects: []\nmoving: [{car}]\n", encoding="utf-8"
    )

    text = DRIVE.format(
        items="{mode: waypoint, position_m: [40, 0], speed_mps: 1}", when="time", time=8
    )

    ends = []
    for world in ("", "world: road.yaml\n"):
        scenario = Scenario.parse((text + world).encode(), "s.yaml", "s", tmp_path)
        ends += [run_scenario(scenario).position for _ in range(2 if world else 1)]

    assert ends[0][-1, 0] > 6.0
    assert ends[1].tobytes() == ends[2].tobytes()
    assert len(ends[1]) == len(ends[0])
    assert ends[1][:, 0].max() > 4.0
    assert 2.0 < ends[1][-1, 0] + 0.42 < 3.62
