# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Flights by estimates with sensors that lie: what lies is named, and the flight ends well."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from marks import exhaustively
from recorded_runs import closed_run

from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.simulation.commands import Mode

HEIGHT = 2.0
HOP = """version: 1
vehicle: scale
seed: {seed}
wind: {{mean_mps: [2, 1, 0], gust_sigma_mps: [0.5, 0.5, 0.2]}}
mission: {{items: [{{mode: takeoff, height_m: 2}}, {{mode: land}}]}}
events: [{events}]
end: {{when: standing_after_landing, time_s: 40}}
"""
IN_TAKEOFF = 3.5
IN_FLIGHT = 5.0


def flown(time, *faults, seed=1):
    """Return the run of a hop with faults of a part, after checks that hold for all of them."""
    events = (f"{{time_s: {time}, fault: {{{fault}}}}}" for fault in faults)
    done = closed_run(HOP.format(seed=seed, events=", ".join(events)))
    run = done.run
    assert not run.final.crashed, run.ending
    assert (run.position[:, 2] - run.position[0, 2]).max() < HEIGHT + 5.0
    assert np.nanpercentile(done.position_nees(), 95) < 50.0
    assert all(touch.sink_speed < 1.2 for touch in run.touchdowns)

    part = faults[0].split(",")[0].removeprefix("part: ")
    named = [begin for begin, text in run.log if text.startswith(part) and ": " in text[1:]]
    assert any(time < begin < time + 2.0 for begin in named), run.log
    return run


@pytest.mark.parametrize(
    ("vehicle", "time", "sink"),
    [
        ("scale_six", IN_FLIGHT, 1.8),
        exhaustively("scale", IN_FLIGHT, 1.2),
        exhaustively("scale", IN_TAKEOFF, 1.2),
    ],
)
def test_a_battery_that_becomes_weak_is_named_alone_and_lands(vehicle, time, sink):
    """Its resistance has risen by 0.25 ohms: six rotors of `scale_six` no longer carry it.

    It flew on, sank and scraped over the ground; encoders and link were named.
    """
    fault = f"{{time_s: {time}, fault: {{part: battery, kind: biased, value: 0.25}}}}"
    hop = HOP.format(seed=1, events=fault).replace("vehicle: scale", f"vehicle: {vehicle}")
    done = closed_run(hop)
    assert {finding.part for finding in done.findings} == {"battery"}
    assert time < done.findings[0].time < time + 2.0
    assert all(touch.sink_speed < sink for touch in done.run.touchdowns)
    modes = [mode for begin, mode in done.run.modes if begin > time]
    assert modes[0] is Mode.LAND
    assert modes[-1] in (Mode.SPOOL_DOWN, Mode.DRIVE)
    assert Mode.FLIGHT not in modes


IN_GUSTS = """version: 1
vehicle: {vehicle}
seed: 21
wind: {{mean_mps: [5, 1, 0], gust_sigma_mps: [1.5, 1.5, 0.75]}}
mission:
  fly_speed_mps: 3
  items:
    - {{mode: takeoff, height_m: 4}}
    - {{mode: waypoint, position_m: [8, 0], height_m: 4}}
    - {{mode: land}}
events:
  - time_s: {time}
    fault: {{part: battery, kind: partial, quantity: cells, value: {cells}}}
end: {{when: standing_after_landing, time_s: 40}}
"""


@pytest.mark.parametrize(
    ("vehicle", "time", "cells"),
    [exhaustively("scale_six", 6.0, 0.7), exhaustively("scale", 8.0, 0.62)],
)
def test_a_battery_with_too_few_cells_is_named_alone_in_gusts(vehicle, time, cells):
    """Rotors at its highest speed were named one by one, and encoders that show it."""
    done = closed_run(IN_GUSTS.format(vehicle=vehicle, time=time, cells=cells))
    assert {finding.part for finding in done.findings} == {"battery"}
    assert time < done.findings[0].time < time + 2.0
    assert Mode.ABORT not in [mode for _, mode in done.run.modes]


DRIVE_AND_HOP = """version: 1
vehicle: scale
mission:
  items:
    - {{mode: waypoint, position_m: [6, 0]}}
    - {{mode: takeoff, height_m: 2}}
    - {{mode: land}}
events: [{{time_s: {time}, fault: {{part: battery, kind: 'off'}}}}]
end: {{when: mission_done, time_s: 14}}
"""


@pytest.mark.parametrize("time", [4.3, exhaustively(5.6)])
def test_a_vehicle_whose_battery_is_dead_takes_off_nowhere(time):
    """It dies in the drive, or as it stands, which only rotors show: TAKEOFF never ended."""
    done = closed_run(DRIVE_AND_HOP.format(time=time))
    assert {finding.part for finding in done.findings} == {"battery"}
    takeoffs = [begin for begin, mode in done.run.modes if mode is Mode.TAKEOFF]
    assert len(takeoffs) == (time > 5.0)
    shows = takeoffs[0] + 0.5 if takeoffs else time
    assert time < done.findings[0].time < shows + 2.0
    assert done.run.modes[-1][1] is Mode.DRIVE


@pytest.mark.parametrize(
    ("part", "time", "seed"),
    [
        ("height", IN_TAKEOFF, 1),
        exhaustively("height", 2.0, 1),
        exhaustively("gps", IN_FLIGHT, 1),
        exhaustively("barometer", 2.0, 1),
        exhaustively("magnetometer", IN_FLIGHT, 1),
    ],
)
def test_a_stuck_sensor_is_left_out_and_the_mission_goes_on(part, time, seed):
    run = flown(time, f"part: {part}, kind: stuck", seed=seed)
    assert run.reached, run.ending
    assert run.touchdowns[0].level_speed < 1.0


@pytest.mark.parametrize(
    ("quantity", "seed"),
    [
        exhaustively("rates, value: [0, 0.05, 0]", 1),
        exhaustively("rates, value: [0.2, 0, 0]", 2),
        exhaustively("rates, value: [0, 0, 0.2]", 3),
        exhaustively("specific_force, value: [0.7, 0, 0]", 1),
        exhaustively("specific_force, value: [0, 0, -0.7]", 3),
    ],
)
def test_a_biased_imu_is_outvoted_and_the_mission_goes_on(quantity, seed):
    run = flown(IN_FLIGHT, f"part: imu, kind: biased, quantity: {quantity}", seed=seed)
    assert run.reached, run.ending
    assert run.touchdowns[0].level_speed < 1.0


@pytest.mark.exhaustive
def test_load_cells_that_are_stuck_while_the_thrust_rises_do_not_keep_it_climbing():
    """TAKEOFF once never ended with wheels that seem to stand, and the filter let them roll."""
    run = flown(2.5, "part: wheel_loads, kind: stuck", seed=1)
    assert run.reached, run.ending
    assert run.touchdowns[0].level_speed < 1.0


@pytest.mark.parametrize(
    ("time", "fault", "vehicle"),
    [
        exhaustively(IN_FLIGHT, "kind: biased, value: 50", "scale"),
        # each fault at two times, each vehicle with each fault
        exhaustively(2.0, "kind: noisy, value: 10", "scale"),
        exhaustively(2.0, "kind: noisy, value: [0, 0, 90, 0]", "scale"),
        exhaustively(IN_TAKEOFF, "kind: biased, value: 50", "scale"),
        exhaustively(IN_TAKEOFF, "kind: noisy, value: 50", "scale"),
        exhaustively(IN_FLIGHT, "kind: biased, value: 50", "scale_quad"),
        exhaustively(IN_FLIGHT, "kind: noisy, value: 50", "scale_quad"),
        exhaustively(5.9, "kind: noisy, value: 10", "scale_quad"),
        exhaustively(5.9, "kind: noisy, value: [0, 0, 90, 0]", "scale_quad"),
    ],
)
def test_load_cells_that_show_load_in_flight_keep_no_mode_and_end_none(time, fault, vehicle):
    """TAKEOFF climbed on for ever, and LAND stopped the rotors at 2 m: the wheels seemed to stand.

    LAND is requested at 5.9 s. Each vehicle meets each fault and each time, not all pairs of them.
    """
    events = f"{{time_s: {time}, fault: {{part: wheel_loads, {fault}}}}}"
    text = HOP.format(seed=1, events=events).replace("vehicle: scale", f"vehicle: {vehicle}")
    run = closed_run(text).run
    assert run.reached, run.ending
    assert (run.position[:, 2] - run.position[0, 2]).max() < HEIGHT + 0.5
    assert [mode for _, mode in run.modes[2:]] == [
        Mode.TAKEOFF,
        Mode.FLIGHT,
        Mode.LAND,
        Mode.SPOOL_DOWN,
    ]
    assert all(touch.sink_speed < 1.2 for touch in run.touchdowns)
    assert all(touch.level_speed < 1.0 for touch in run.touchdowns)


@pytest.mark.parametrize(
    ("fault", "seed"),
    [
        exhaustively("part: gps, kind: noisy, quantity: velocity, value: 1.1", 1),
        exhaustively("part: gps, kind: noisy, quantity: velocity, value: 0.5", 2),
        exhaustively("part: barometer, kind: biased, value: 60", 1),
        exhaustively("part: magnetometer, kind: biased, value: [0, 2.0e-5, 0]", 2),
        exhaustively("part: gps, kind: biased, value: [30, 0, 0]", 1),
        exhaustively("part: gps, kind: biased, quantity: velocity, value: [2.7, 1.8, -0.5]", 2),
        exhaustively("part: gps, kind: biased, quantity: velocity, value: [0, 0, -0.8]", 1),
        exhaustively("part: gps, kind: biased, quantity: velocity, value: [0, 0, 0.8]", 2),
        exhaustively("part: height, kind: wrong, value: 30", 2),
    ],
)
def test_a_sensor_that_is_far_off_is_outvoted_and_the_mission_goes_on(fault, seed):
    run = flown(IN_FLIGHT, fault, seed=seed)
    assert run.reached, run.ending
    assert run.touchdowns[0].level_speed < 1.0


@pytest.mark.exhaustive
def test_an_obstructed_height_sensor_is_outvoted_and_the_mission_goes_on():
    obstructed = "part: height, kind: stuck", "part: height, kind: noisy, value: 0.02"
    run = flown(IN_TAKEOFF, *obstructed, seed=1)
    assert run.reached, run.ending
    assert run.touchdowns[0].level_speed < 1.0


@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        ("stuck", 1),
        exhaustively("stuck", 2),
        exhaustively("wrong, quantity: rates, value: 0.5", 1),
        exhaustively("wrong, quantity: rates, value: -0.8", 2),
    ],
)
def test_a_stuck_imu_aborts_the_flight(kind, seed):
    """The rotors' speeds, the magnetometer and the GPS show how it turns: it lands in place."""
    run = flown(IN_FLIGHT, f"part: imu, kind: {kind}", seed=seed)
    aborted = next(begin for begin, mode in run.modes if mode is Mode.ABORT)
    assert aborted == pytest.approx(IN_FLIGHT + 0.02, abs=0.02)
    assert run.touchdowns[0].level_speed < 1.0


@pytest.mark.parametrize(
    ("vehicle", "delay", "aborts"),
    [
        exhaustively("scale_quad", 0.2, True),
        exhaustively("scale", 0.09, False),
        exhaustively("full", 0.12, True),
    ],
)
def test_an_imu_that_comes_late_is_waited_for_no_longer(vehicle, delay, aborts):
    """The rotors show the motion since its last sample. Without them all three struck the ground.

    From 0.1 s on it counts as silent.
    """
    fault = f"{{time_s: {IN_FLIGHT}, fault: {{part: imu, kind: delayed, value: {delay}}}}}"
    text = HOP.format(seed=1, events=fault).replace("vehicle: scale", f"vehicle: {vehicle}")
    done = closed_run(text)
    run = done.run
    assert not run.final.crashed, run.ending
    assert (run.modes[-1][1] is Mode.ABORT) is aborts
    assert any(f.part == "imu" and f.time < IN_FLIGHT + 2.0 for f in done.findings)
    assert np.nanpercentile(done.position_nees(), 95) < 50.0
    assert all(touch.sink_speed < 1.2 for touch in run.touchdowns)
    assert all(touch.level_speed < 1.0 for touch in run.touchdowns)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("seed", "share"), [(1, 0.94), (2, 0.97)])
def test_an_imu_that_delivers_now_and_then_blames_no_other_part(seed, share):
    """The guide has nothing to answer meanwhile; its link was said to lose commands."""
    fault = f"{{time_s: 4.2, fault: {{part: imu, kind: intermittent, value: {share}}}}}"
    findings = closed_run(HOP.format(seed=seed, events=fault)).findings
    assert {finding.part for finding in findings} <= {"imu", "ABORT"}
    assert any("IMU" in finding.text for finding in findings)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("vehicle", "time", "other", "imu"),
    [
        ("scale_quad", 3.6, "part: wheel_loads, kind: wrong, value: 45", "wrong, value: 0.5"),
        ("scale_quad", 3.1, "part: gps, kind: 'off'", "wrong, value: 0.76"),
        ("full", 6.0, "part: rotor_1, kind: 'off'", "biased, value: [0, 0.05, 0]"),
        ("full", 5.9, "part: rotor_2, kind: 'off'", "biased, value: [0.05, 0, 0]"),
    ],
)
def test_an_imu_that_lies_with_another_part_at_fault_touches_down_slowly(vehicle, time, other, imu):
    events = (
        f"{{time_s: {time}, fault: {{{other}}}}}",
        f"{{time_s: {IN_FLIGHT}, fault: {{part: imu, quantity: rates, kind: {imu}}}}}",
    )
    text = HOP.format(seed=1, events=", ".join(events))
    run = closed_run(text.replace("vehicle: scale", f"vehicle: {vehicle}")).run
    assert not run.final.crashed, run.ending
    assert run.modes[-1][1] is Mode.ABORT
    assert all(touch.sink_speed < 1.2 for touch in run.touchdowns)
    assert all(touch.level_speed < 1.0 for touch in run.touchdowns)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("imu", "encoder", "bias", "seed"),
    [
        (5.0, 5.6, 50.0, 1),
        (5.0, 5.6, -50.0, 3),
        (5.0, 5.6, 100.0, 3),
        (5.6, 5.0, 50.0, 2),
        (5.6, 5.0, -50.0, 3),
    ],
)
def test_without_an_imu_an_encoder_that_begins_to_lie_lands_too(imu, encoder, bias, seed):
    """A second later a rotor struck the ground, as the moments of all rotors show the attitude."""
    lies = f"part: encoders, kind: biased, quantity: rotor_rate, value: [0, 0, {bias}, 0, 0, 0]"
    events = (
        f"{{time_s: {imu}, fault: {{part: imu, kind: 'off'}}}}",
        f"{{time_s: {encoder}, fault: {{{lies}}}}}",
    )
    run = closed_run(HOP.format(seed=seed, events=", ".join(events))).run
    assert not run.final.crashed, run.ending
    assert run.modes[-1][1] is Mode.ABORT
    assert all(touch.sink_speed < 1.2 for touch in run.touchdowns)
    assert all(touch.level_speed < 1.0 for touch in run.touchdowns)


@pytest.mark.parametrize(
    "faults",
    [
        ("part: height, kind: biased, value: -8",),
        exhaustively(("part: wheel_loads, kind: biased, value: 50", "part: encoders, kind: stuck")),
    ],
    ids=["height", "loads and struts"],
)
def test_no_take_off_climbs_on_for_ever_by_what_it_sees_of_the_ground(faults):
    """A height that showed 8 m too little took it 6.7 m too high, load cells and struts 14 m."""
    events = ", ".join(f"{{time_s: 2.5, fault: {{{fault}}}}}" for fault in faults)
    run = closed_run(HOP.format(seed=1, events=events)).run
    assert run.reached, run.ending
    assert (run.position[:, 2] - run.position[0, 2]).max() < HEIGHT + 1.0
    assert all(touch.sink_speed < 1.2 for touch in run.touchdowns)
    assert all(touch.level_speed < 1.0 for touch in run.touchdowns)


PAIRS = {
    "lone": "part: encoders, kind: biased, quantity: rotor_rate, value: [0, 0, -80, 0, 0, 0]",
    "off": "part: encoders, kind: off",
    "noisy": "part: encoders, kind: noisy, quantity: rotor_rate, value: 20",
    "frozen": "part: encoders, kind: stuck",
    "low": "part: encoders, kind: biased, quantity: rotor_rate, value: -70",
}
"""Encoders that show nothing of rotor 3."""


@pytest.mark.exhaustive
@pytest.mark.parametrize("fault", ["kind: off", "kind: stuck, value: 350"])
@pytest.mark.parametrize(
    ("encoders", "seed"), [("lone", 1), ("off", 1), ("noisy", 0), ("frozen", 1), ("low", 1)]
)
def test_a_rotor_that_fails_behind_encoders_that_lie_is_named_and_lands(encoders, fault, seed):
    faults = (
        f"{{time_s: 4.5, fault: {{{PAIRS[encoders]}}}}}",
        f"{{time_s: 7, fault: {{part: rotor_3, {fault}}}}}",
    )
    way = "{mode: takeoff, height_m: 2}, {mode: waypoint, position_m: [9, 0], height_m: 2}"
    text = HOP.format(seed=seed, events=", ".join(faults)).replace(
        "{mode: takeoff, height_m: 2}", way
    )
    # it stands by then, but with a rotor that turns on it never counts as standing
    done = closed_run(text.replace("time_s: 40", "time_s: 18"))
    run = done.run
    assert not run.final.crashed, run.ending
    named = next(f.time for f in done.findings if f.part == "rotor 3" and f.time > 7.0)
    assert named < 9.0
    assert all(finding.part != "battery" for finding in done.findings)
    assert run.modes[-1][1] is Mode.ABORT
    assert all(touch.sink_speed < 1.2 for touch in run.touchdowns)
    assert all(touch.level_speed < 1.0 for touch in run.touchdowns)


@pytest.mark.exhaustive
def test_wheels_that_bounce_show_no_speed_of_a_rotor_that_runs_away():
    """Encoders show nothing; by the pushes of the ground it seemed to turn at 142 of 350 rad/s.

    The others held it too weakly then, and it tipped the vehicle over.
    """
    events = (
        "{time_s: 5, fault: {part: encoders, kind: stuck}}",
        "{time_s: 7.5, fault: {part: rotor_3, kind: stuck, value: 350}}",
    )
    text = HOP.format(seed=1, events=", ".join(events)).replace("time_s: 40", "time_s: 16")
    run = closed_run(text).run
    assert not run.final.crashed, run.ending
    assert run.on_wheels[-1]


@pytest.mark.exhaustive
def test_a_quadrotor_lands_with_a_weak_rotor_behind_an_encoder_that_lies():
    """The vehicle would fall without the rotor; half of its thrust and the others carry it."""
    lies = "part: encoders, kind: biased, quantity: rotor_rate, value: [0, 0, -80, 0]"
    faults = (
        f"{{time_s: 4.5, fault: {{{lies}}}}}",
        "{time_s: 7, fault: {part: rotor_3, kind: partial, value: 0.5}}",
    )
    way = "{mode: takeoff, height_m: 2}, {mode: waypoint, position_m: [9, 0], height_m: 2}"
    text = HOP.format(seed=1, events=", ".join(faults)).replace("{mode: takeoff, height_m: 2}", way)
    done = closed_run(text.replace("vehicle: scale", "vehicle: scale_quad"))
    run = done.run
    assert not run.final.crashed, run.ending
    assert next(f.time for f in done.findings if f.part == "rotor 3" and f.time > 7.0) < 9.0
    assert all(touch.sink_speed < 1.2 for touch in run.touchdowns)
    assert all(touch.level_speed < 1.0 for touch in run.touchdowns)


DRIVE = """version: 1
vehicle: scale
seed: {seed}
mission:
  items:
    - {{mode: waypoint, position_m: [8, 0]}}
    - {{mode: waypoint, position_m: [20, 2]}}
events: [{{time_s: 6, fault: {{part: {part}, kind: biased, quantity: {bias}}}}}]
end: {{when: mission_done, time_s: 14}}
"""


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("part", "bias", "seed"),
    [
        ("gps", "velocity, value: [2.7, 1.8, -0.5]", 1),
        ("gps", "velocity, value: [0, 1.2, 0]", 2),
        ("gps", "velocity, value: [1, -1, 0]", 3),
        ("imu", "specific_force, value: [1, 0, 0]", 2),
        ("imu", "specific_force, value: [0, 0.8, 0]", 3),
        ("imu", "rates, value: [0, 0.1, 0]", 2),
    ],
)
def test_on_the_ground_the_wheels_tell_a_biased_imu_from_a_biased_gps(part, bias, seed):
    done = closed_run(DRIVE.format(part=part, bias=bias, seed=seed))
    assert done.run.reached, done.run.ending
    assert {finding.part for finding in done.findings} == {part}
    assert done.findings[0].time < 8.3
    assert np.nanpercentile(done.position_nees(), 95) < 50.0


@pytest.mark.exhaustive
def test_a_gps_of_1_hz_helps_to_outvote_a_gyroscope_when_the_magnetometer_is_off():
    sensors = SensorParameters.load("scale")
    sensors = sensors.replace(gps=dataclasses.replace(sensors.gps, rate=1.0))
    fault = "part: imu, kind: biased, quantity: rates, value: [0.12, 0.08, 0]"
    events = f"{{time_s: 6.0, sensor_off: magnetometer}}, {{time_s: 7.55, fault: {{{fault}}}}}"
    done = closed_run(
        HOP.format(seed=1, events=events).replace("height_m: 2", "height_m: 8"), sensors
    )
    assert not done.run.final.crashed
    assert done.largest_error() < 8.0
    named = [time for time, text in done.run.log if text.startswith("imu has a biased gyroscope")]
    assert 7.55 < named[0] < 9.55
