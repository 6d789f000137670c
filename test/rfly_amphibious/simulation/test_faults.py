# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Faults of sensors and actuators against effects worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rfly_amphibious.dynamics.model import AmphibiousModel
from rfly_amphibious.scenarios.scenario import Scenario
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.simulation.commands import RotorCommand, WheelCommand
from rfly_amphibious.simulation.faults import Fault, FaultKind
from rfly_amphibious.simulation.simulation import Simulation
from rfly_amphibious.vehicle import state_layout
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.pilot import abort_pilot
from rfly_common.errors import ConfigError
from rfly_common.frames import ned_to_enu
from rfly_common.geodesy import geodetic_to_ned
from rfly_lab.runs.run import run_scenario

PARAMS = VehicleParameters.load("scale")
SENSORS = SensorParameters.load("scale")
COLUMNS = state_layout.state_columns(PARAMS.rotors, 4)
BEGIN = 0.5
"""Time of all faults, s."""


def fault(part, kind, value=(), quantity="", duration=None):
    return Fault(BEGIN, part, FaultKind(kind), tuple(value), quantity, duration)


def make(*faults, **more):
    return Simulation(
        AmphibiousModel(PARAMS), SENSORS, seed=4, events=faults, fail_safe=abort_pilot, **more
    )


def drive(simulation, seconds=1.0, torque=3.0, steering=0.1, brake=0.0, rotor=100.0):
    """Return all samples by kind, each with the time of its arrival, under held commands."""
    arrived = {}
    for _ in range(round(seconds / simulation.period)):
        now = simulation.time
        wheels = WheelCommand(now, steering, np.full(4, torque), np.full(4, brake))
        simulation.command_wheels(wheels)
        simulation.command_rotors(RotorCommand(now, np.full(PARAMS.rotors, rotor)))
        samples = simulation.tick()
        for name in samples.__dataclass_fields__:
            kind = getattr(samples, name)
            if kind is not None:
                arrived.setdefault(name, []).append((simulation.time, kind))
    return arrived


@pytest.fixture(scope="module")
def right():
    """Samples without a fault."""
    return drive(make())


@pytest.fixture(scope="module")
def right_for_long():
    return drive(make(), 4.5)


def series(arrived, kind, field):
    """Return times of measurement and values of one reading."""
    held = [samples for _, samples in arrived.get(kind, ())]
    if not held:
        return np.empty(0), np.empty(0)
    times = np.concatenate([samples.time for samples in held])
    return times, np.concatenate([getattr(samples, field) for samples in held])


def place(arrived):
    time, geodetic = series(arrived, "gps", "geodetic")
    return time, ned_to_enu(geodetic_to_ned(geodetic, make().sensors.geo_origin))


@pytest.mark.parametrize(
    ("part", "quantity", "kind", "field", "value"),
    [
        ("imu", "", "imu", "specific_force", (0.1, -0.2, 0.3)),
        ("imu", "rates", "imu", "rates", (0.02,)),
        ("gps", "velocity", "gps", "velocity", (1.0, 2.0, 3.0)),
        ("magnetometer", "", "magnetometer", "field", (1e-5,)),
        ("barometer", "", "barometer", "pressure", (120.0,)),
        ("encoders", "steering", "joints", "steering", (0.05, 0.0, 0.0, -0.05)),
        ("height", "", "height", "distance", (0.4,)),
        ("wheel_loads", "", "wheel_loads", "load", (5.0, 0.0, 0.0, 0.0)),
        ("wind", "", "wind", "velocity", (1.0,)),
    ],
)
def test_a_bias_is_added_and_a_wrong_reading_is_the_value(
    right, part, quantity, kind, field, value
):
    expected = series(right, kind, field)[1]
    arrival = [time for time, samples in right[kind] for _ in samples.time]
    during = (np.array(arrival) > BEGIN + 1e-9) & (np.array(arrival) <= BEGIN + 0.3 + 1e-9)
    assert during.any()
    assert not during.all()

    biased = drive(make(fault(part, "biased", value, quantity, 0.3)))
    found = series(biased, kind, field)[1]
    assert found[during] - expected[during] == pytest.approx(
        np.broadcast_to(value, expected[during].shape if expected.ndim > 1 else (during.sum(),)),
        abs=1e-9,
    )
    assert np.array_equal(found[~during], expected[~during])

    wrong = series(drive(make(fault(part, "wrong", value, quantity, 0.3))), kind, field)[1]
    assert (wrong[during] == np.array(value)).all()
    assert np.array_equal(wrong[~during], expected[~during])


def test_a_bias_of_the_gps_is_in_metres_and_no_other_sensor_changes(right):
    moved = drive(make(fault("gps", "biased", (3.0, -2.0, 1.0))))
    difference = place(moved)[1][-1] - place(right)[1][-1]
    assert difference == pytest.approx((3.0, -2.0, 1.0), abs=1e-6)
    for kind, field in (("imu", "rates"), ("barometer", "pressure"), ("joints", "wheel_angle")):
        assert np.array_equal(series(moved, kind, field)[1], series(right, kind, field)[1])


def test_a_stuck_sensor_repeats_its_last_reading_with_new_times(right):
    stuck = drive(make(fault("encoders", "stuck", duration=0.3)))
    for kind, field in (("joints", "wheel_angle"), ("wheel_odometry", "position")):
        times, expected = series(right, kind, field)
        found_times, found = series(stuck, kind, field)
        assert np.array_equal(found_times, times)
        last = expected[times <= BEGIN + 1e-9][-1]
        held = (times > BEGIN + 1e-9) & (times <= BEGIN + 0.3 + 1e-9)
        assert (found[held] == last).all()
        assert np.array_equal(found[~held], expected[~held])


def test_a_slow_sensor_keeps_every_so_many_readings():
    times = series(drive(make(fault("imu", "slow", (50.0,)))), "imu", "rates")[0]
    late = times[times > BEGIN + 1e-9]
    assert late == pytest.approx(BEGIN + 0.02 * np.arange(1, 26))


def test_a_delayed_sensor_delivers_later_with_the_time_of_the_measurement():
    late = drive(make(fault("barometer", "delayed", (0.2,), duration=0.3)))["barometer"]
    age = {round(float(samples.time[0]), 3): now - samples.time[0] for now, samples in late}
    assert age[0.48] == pytest.approx(0.0, abs=0.0041)
    assert age[0.52] == pytest.approx(0.2, abs=0.0081)
    assert age[0.56] == pytest.approx(0.2, abs=0.0081)
    assert 0.68 not in age  # on its way at the end of the fault
    assert age[0.88] == pytest.approx(0.0, abs=0.0041)


@pytest.mark.parametrize("second", [0.1, 0.2])
def test_two_delays_of_a_sensor_add_up(second):
    """Each passed the other's readings on to itself for ever, and none was delivered."""
    faults = (fault("barometer", "delayed", (0.2,)), fault("barometer", "delayed", (second,)))
    late = drive(make(*faults))["barometer"]
    ages = [now - samples.time[0] for now, samples in late if now > BEGIN + 1e-9]
    assert len(ages) >= 3
    assert ages == pytest.approx([0.2 + second] * len(ages), abs=0.0121)


def test_an_intermittent_sensor_loses_a_share_and_the_rest_is_unchanged(right_for_long):
    times, expected = series(right_for_long, "imu", "rates")
    kept, found = series(drive(make(fault("imu", "intermittent", (0.3,))), 4.5), "imu", "rates")
    # 1000 readings: the share's standard deviation is √(0.3 · 0.7 / 1000) = 0.0145
    lost = 1.0 - (kept > BEGIN + 1e-9).sum() / 1000
    assert lost == pytest.approx(0.3, abs=4 * 0.0145)
    assert np.array_equal(found, expected[np.isin(times, kept)])


def test_noise_has_the_standard_deviation_and_differs_by_axis(right_for_long):
    expected = series(right_for_long, "imu", "rates")[1]
    found = series(drive(make(fault("imu", "noisy", (0.1,), "rates")), 4.5), "imu", "rates")[1]
    noise = (found - expected)[125:]
    # of 3000 numbers σ is known to 1 / √6000 = 1.3 %
    assert noise.std() == pytest.approx(0.1, rel=0.06)
    assert abs(np.corrcoef(noise.T)[0, 1]) < 0.15
    assert np.array_equal(found[:125], expected[:125])


# actuators


def spins(simulation):
    return simulation.state.x[COLUMNS["rotor_speed"]]


def test_a_rotor_with_a_part_of_its_thrust_turns_slower_by_the_root():
    simulation = make(fault("rotor_2", "partial", (0.49,)))
    drive(simulation, 1.5, rotor=100.0)
    assert spins(simulation) == pytest.approx([100.0, 70.0, 100.0, 100.0, 100.0, 100.0], rel=1e-4)
    thrust = simulation.outputs.thrust
    assert thrust[1] / thrust[0] == pytest.approx(0.49, rel=0.01)


@pytest.mark.parametrize("kind", ["stuck", "off"])
def test_a_rotor_sticks_at_its_speed_or_stops_whatever_is_commanded(kind):
    value = (60.0,) if kind == "stuck" else ()
    simulation = make(fault("rotor_3", kind, value))
    drive(simulation, 1.5)
    assert spins(simulation)[2] == pytest.approx(value[0] if value else 0.0, abs=0.01)
    assert spins(simulation)[0] == pytest.approx(100.0, rel=1e-4)


def test_a_rotor_sticks_under_torque_commands_too():
    simulation = make(fault("rotor_1", "stuck", (60.0,)))
    torque = PARAMS.torque_coefficient * 100.0**2
    for _ in range(500):
        now = simulation.time
        simulation.command_wheels(WheelCommand(now))
        simulation.command_rotors(RotorCommand(now, np.full(PARAMS.rotors, torque), True))
        simulation.tick()
    assert spins(simulation)[0] == pytest.approx(60.0, rel=0.01)
    assert spins(simulation)[1] == pytest.approx(100.0, rel=0.05)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [("off", (), 0.0), ("partial", (0.25,), 0.75), ("stuck", (-2.0,), -2.0)],
)
def test_a_drive_obeys_its_fault_alone(kind, value, expected):
    simulation = make(fault("drive_rl", kind, value))
    drive(simulation, 1.5, torque=3.0)
    found = simulation.state.x[COLUMNS["drive_torque"]]
    assert found == pytest.approx([3.0, 3.0, expected, 3.0], abs=1e-6)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [("partial", (0.5,), 0.05), ("stuck", (-0.2,), -0.2), ("biased", (0.03,), 0.13)],
)
def test_the_steering_obeys_its_fault(kind, value, expected):
    simulation = make(fault("steering", kind, value))
    drive(simulation, 1.5, steering=0.1)
    assert simulation.state.x[COLUMNS["steering"]] == pytest.approx(expected, abs=1e-4)


def stopping(*faults):
    """Return the speed lost in 0.2 s of braking with 1 N m a wheel, from 3 m/s."""
    model = AmphibiousModel(PARAMS)
    simulation = Simulation(
        model, SENSORS, model.standing(speed=3.0), events=faults, fail_safe=abort_pilot
    )
    drive(simulation, 0.2, torque=0.0, steering=0.0, brake=1.0, rotor=0.0)
    return 3.0 - simulation.state.velocity[0]


def test_brakes_that_do_not_act_take_their_share_of_the_deceleration():
    brakes = [f"brake_{wheel}" for wheel in PARAMS.wheels]

    def lost(kind, value=()):
        return stopping(*(Fault(0.0, brake, FaultKind(kind), value) for brake in brakes))

    # 4 N m / radius on the mass, and the wheels' inertia: v' = ΣM r / (m r² + 4 J)
    radius = float(PARAMS.rolling_radius[0])
    inertia = PARAMS.mass * radius**2 + 4 * PARAMS.wheel_inertia
    by_brakes = 0.2 * 4.0 * radius / inertia
    rolling = lost("off")
    assert stopping() - rolling == pytest.approx(by_brakes, rel=0.05)
    assert lost("partial", (0.25,)) - rolling == pytest.approx(0.25 * by_brakes, rel=0.05)
    assert lost("stuck", (2.0,)) - rolling == pytest.approx(2.0 * by_brakes, rel=0.05)


# injected, mended


def test_injected_in_the_run_it_acts_until_it_is_mended_and_a_reset_forgets_it():
    simulation = make()
    drive(simulation, 0.2)
    simulation.inject(Fault(simulation.time, "rotor_1", FaultKind.OFF))
    simulation.inject(Fault(simulation.time, "barometer", FaultKind.OFF))
    assert "barometer" not in drive(simulation, 0.5)
    assert spins(simulation)[0] < 1.0

    assert simulation.mend("rotor_1") == 1
    assert simulation.mend("rotor_1") == 0
    assert [one.part for one in simulation.acting_faults] == ["barometer"]
    drive(simulation, 0.5)
    assert spins(simulation)[0] == pytest.approx(100.0, rel=1e-3)
    simulation.reset()
    assert "barometer" in drive(simulation, 0.5)


@pytest.mark.parametrize(
    ("part", "kind", "value", "quantity", "expected"),
    [
        ("rotor_7", "off", (), "", "part: 'rotor_7', expected one of imu, gps"),
        ("gps", "partial", (0.5,), "", "kind: 'partial', expected one of off, stuck, biased"),
        ("steering", "off", (), "", "kind: 'off', expected one of stuck, biased, partial"),
        ("gps", "slow", (), "", "value: 0 numbers, expected 1 for gps slow"),
        ("gps", "biased", (1.0, 2.0), "", "value: 2 numbers, expected 1 or 3 for gps biased"),
        ("gps", "off", (), "velocity", "quantity: expected with sensors that are biased, noisy"),
        ("gps", "biased", (1.0,), "rates", "quantity: 'rates', expected one of position, veloc"),
        ("imu", "intermittent", (1.1,), "", "value: 1.1, expected a finite number of at least 0"),
        ("rotor_1", "stuck", (-1.0,), "", "value: -1.0, expected a finite number of at least 0"),
        ("steering", "stuck", (math.nan,), "", "value: nan, expected a finite number"),
    ],
)
def test_what_a_vehicle_cannot_have_is_refused(part, kind, value, quantity, expected):
    with pytest.raises(ConfigError) as error:
        make(fault(part, kind, value, quantity))
    assert str(error.value).startswith(expected)


def test_a_sensor_that_is_not_fitted_has_no_faults():
    with pytest.raises(ConfigError, match="part: 'wind' is not among this vehicle's sensors"):
        Simulation(
            AmphibiousModel(PARAMS),
            SENSORS.replace(wind=None),
            events=(fault("wind", "off"),),
            fail_safe=abort_pilot,
        )


# scenarios


SCENARIO = """version: 1
vehicle: scale
mission: {items: [{mode: waypoint, position_m: [20, 0]}]}
events:
  - {time_s: 0.5, fault: {part: rotor_2, kind: stuck, value: 50}, duration_s: 1.5}
  - {time_s: 1, fault: {part: gps, kind: biased, quantity: velocity, value: [1, 0, 0.5]}}
end: {when: time, time_s: 4}
"""


def test_a_scenario_file_has_faults_and_the_truth_pilot_feels_those_of_actuators():
    scenario = Scenario.parse(SCENARIO.encode(), "s.yaml")
    assert scenario.events == (
        Fault(0.5, "rotor_2", FaultKind.STUCK, (50.0,), "", 1.5),
        Fault(1.0, "gps", FaultKind.BIASED, (1.0, 0.0, 0.5), "velocity"),
    )
    run = run_scenario(scenario)
    assert run.log[:2] == (
        (0.5, "rotor_2 is stuck: 50 for 1.5 s"),
        (1.0, "gps is biased (velocity): 1 0 0.5: no effect, this pilot sees the truth"),
    )
    speed = dict(zip(np.round(run.time, 2), run.x[:, COLUMNS["rotor_speed"]][:, 1], strict=True))
    assert speed[0.5] == pytest.approx(0.0, abs=1e-9)
    assert speed[1.5] == pytest.approx(50.0, rel=1e-3)
    assert speed[4.0] < 0.5


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("part: gps", "part: sonar", "s.yaml:6: events[1].fault: part: 'sonar', expected one of"),
        ("biased", "odd", "s.yaml:6: events[1].fault.kind: 'odd', allowed: off, stuck, biased"),
        ("value: 50", "value: x", "s.yaml:5: events[0].fault.value: 'x', expected a number or"),
        ("rotor_2", "rotor_7", "s.yaml:5: events[0].fault: part: 'rotor_7', expected one of imu"),
        (", kind: stuck", "", "s.yaml:5: events[0].fault: the key kind is missing"),
    ],
)
def test_what_is_refused_in_a_scenario_file_is_named(old, new, expected):
    with pytest.raises(ConfigError) as error:
        Scenario.parse(SCENARIO.replace(old, new, 1).encode(), "s.yaml")
    assert str(error.value).startswith(expected)
