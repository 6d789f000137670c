# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A middle axle in a vehicle's file: what it takes, what is refused, and what it changes in arrays
and names.
"""

from __future__ import annotations

from importlib import resources

import numpy as np
import pytest

from rfly_amphibious.sensors.samples import joint_names
from rfly_amphibious.vehicle import state_layout
from rfly_amphibious.vehicle.motor_channels import motor_channels
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.errors import ConfigError

VEHICLES = resources.files("rfly_amphibious") / "data" / "vehicles"
TEXT = (VEHICLES / "scale_six.yaml").read_text(encoding="utf-8")
SIX = VehicleParameters.load("scale_six")
WHEELS = ("fl", "fr", "rl", "rr", "ml", "mr")


def test_the_shipped_vehicle_by_hand():
    """Equal springs: the axles' loads follow their distance from their middle, -0.01 m.

    The balance of moments gives how much.
    """
    assert SIX.wheels == SIX.driven == WHEELS
    assert SIX.mass == pytest.approx(22.8 + 6.0 + 6 * 1.2)
    weight = 28.8 * 9.80665
    places = np.array((0.42, -0.44, -0.01))
    from_middle = places + 0.01
    lean = weight / 2.0 * 0.01 / (from_middle @ from_middle)
    assert SIX.spring_load[::2] == pytest.approx(weight / 6.0 + lean * from_middle, rel=1e-12)
    assert SIX.spring_load @ np.repeat(places, 2) == pytest.approx(0.0, abs=1e-12)

    expected = 2 * 1.2 * (0.42 - 0.44 - 0.01) / 36.0
    assert SIX.center_x == pytest.approx(expected)
    expected = np.array(((-0.01, 0.28), (-0.01, -0.28)))
    assert SIX.hub_position[4:, :2] == pytest.approx(expected)
    assert SIX.steering_lever == pytest.approx(0.43)
    assert SIX.turn_x == pytest.approx(-0.01)
    assert SIX.steering_sign.tolist() == [1, 1, -1, -1, 0, 0]
    assert (SIX.max_rotor_speed / SIX.hover_speed) ** 2 > 1.5


@pytest.mark.parametrize(
    ("pattern", "replacement", "message"),
    [
        (
            "  middle_axle_m: -0.01  "
            "# forward of the centre of mass; without this key there are four wheels\n",
            "",
            r"mine.yaml:12: chassis.middle_axle_m: missing, but there is "
            r"suspension.middle_stiffness_npm, suspension.middle_anti_roll_npm, "
            r"tyre.cornering_factor_middle",
        ),
        (
            "middle_axle_m: -0.01",
            "middle_axle_m: 0.5",
            r"mine.yaml:15: chassis.middle_axle_m: 0.5 m, expected between",
        ),
        (
            "  middle_stiffness_npm: 1150.0\n",
            "",
            r"chassis.middle_axle_m: -0.01 m, but there is no suspension.middle_st",
        ),
        (
            "middle_stiffness_npm: 1150.0",
            "middle_stiffness_npm: -1.0",
            r"suspension.middle_stiffness_npm: -1",
        ),
        (
            "rl, rr, ml, mr]",
            "rl, rr, mm]",
            r"drive.wheels\[4\]: 'mm', allowed: fl, fr, rl, rr, ml, mr",
        ),
    ],
)
def test_impossible_vehicles_are_named(pattern, replacement, message):
    assert TEXT.count(pattern) == 1
    with pytest.raises(ConfigError, match=message):
        VehicleParameters.parse(TEXT.replace(pattern, replacement).encode(), "mine.yaml")


def test_springs_that_would_have_to_pull_are_refused():
    """Lean back on a stiff middle axle ahead of the centre of mass, and lift the front."""
    with pytest.raises(
        ConfigError,
        match=r"middle_spring: the springs of front, .* would carry -\S+, \S+, \S+ N: none",
    ):
        SIX.replace(middle_axle=0.3, middle_spring=5e4)


def test_wheels_of_a_middle_axle_that_is_not_there_are_refused():
    with pytest.raises(
        ConfigError, match="driven: mr: there is no middle axle; expected some of fl, fr, rl, rr"
    ):
        VehicleParameters.load("scale").replace(driven=("rl", "mr"))


def test_a_middle_axle_is_a_matter_of_three_keys():
    """Add it to any shipped set; without its own keys it has no bar, and its λ_K is 1."""
    keys = [(("chassis", "middle_axle_m"), 0.1), (("suspension", "middle_stiffness_npm"), 900.0)]
    p = VehicleParameters.load("scale", keys)
    assert p.wheels == WHEELS
    assert p.driven == ("fl", "fr", "rl", "rr")
    assert p.anti_roll.tolist() == [0.0] * 6
    assert p.cornering_factor.tolist() == [0.85, 0.85, 1.0, 1.0, 1.0, 1.0]


def test_the_first_columns_are_those_of_four_wheels():
    """A reader of four wheels reads the same columns of six correctly."""
    four = state_layout.state_names(6)
    six = state_layout.state_names(6, 6)
    assert six[: len(four)] == four
    assert six[len(four) :] == [
        f"{quantity}_{wheel}_{unit}"
        for quantity, unit in (
            ("strut", "m"),
            ("strut_rate", "mps"),
            ("wheel_speed", "radps"),
            ("tyre_x", "m"),
            ("tyre_y", "m"),
            ("drive_torque", "nm"),
            ("steering_trim", "rad"),
        )
        for wheel in ("ml", "mr")
    ]
    assert len(six) == SIX.state_size == 62
    assert (
        state_layout.controls_size(6, 6),
        state_layout.memory_size(6),
        state_layout.reported(6),
    ) == (25, 16, 78)

    columns = state_layout.state_columns(6, 6)
    names = np.array(six)
    assert names[columns["wheel_speed"]].tolist() == [f"wheel_speed_{w}_radps" for w in WHEELS]
    assert names[columns["drive_torque"]].tolist() == [f"drive_torque_{w}_nm" for w in WHEELS]


@pytest.mark.parametrize("wheels", [4, 6])
def test_columns_are_those_of_the_constants(wheels):
    """Compare the tables of fields with the published numbers of columns."""
    state = state_layout.state_columns(6, wheels)
    controls = state_layout.control_columns(6, wheels)
    memory = state_layout.memory_columns(wheels)
    outputs = state_layout.output_columns(wheels)

    def first(columns, name):
        return np.arange(100)[columns[name]][0]

    for name in state_layout.STATE[:10]:
        assert first(state, name[0]) == getattr(state_layout, name[0].upper())
    assert [first(controls, name) for name, _ in state_layout.CONTROLS[:-1]] == [
        state_layout.STEERING_COMMAND,
        state_layout.DRIVE_COMMAND,
        state_layout.BRAKE_COMMAND,
        state_layout.ROTOR_COMMAND,
    ]
    for name in ("gust", "overturned", "crashed"):
        assert first(memory, name) == getattr(state_layout, name.upper())
    assert first(outputs, "wheels_off_map") == state_layout.OFF_MAP
    named = "specific_force thrust rotor_power body_points_down clearance rotor_torque"
    for name in named.split():
        assert first(outputs, name) == getattr(state_layout, name.upper())

    sizes = [state_layout.state_size(6, wheels), state_layout.controls_size(6, wheels)]
    sizes += [state_layout.memory_size(wheels), state_layout.reported(wheels)]
    for columns, size in zip((state, controls, memory, outputs), sizes, strict=True):
        used = np.concatenate([np.arange(size)[own] for own in columns.values()])
        assert sorted(used) == list(range(size))


def test_joint_states_name_all_wheels_and_only_those_that_steer():
    names = joint_names(SIX)
    assert names[:6] == [f"wheel_{wheel}_joint" for wheel in WHEELS]
    assert names[6:10] == [f"steer_{wheel}_joint" for wheel in ("fl", "fr", "rl", "rr")]
    assert names[10:16] == [f"strut_{wheel}_joint" for wheel in WHEELS]


@pytest.mark.parametrize(
    ("rotors", "shown"),
    [
        (3, [10.0, 11.0]),
        (4, [10.0, 11.0]),
        (6, [10.0, 11.0]),
        (7, []),
    ],
)
def test_rflysim3ds_channels_show_the_means_of_both_sides(rotors, shown):
    """The mean (7 + 12 + 17)/3 is 12, less the pitch rate; three rotors leave no room for six."""
    x = np.zeros(state_layout.state_size(rotors, 6))
    x[33 : 33 + rotors] = 100.0
    x[11] = 2.0
    x[state_layout.state_columns(rotors, 6)["wheel_speed"]] = (7.0, 8.0, 12.0, 13.0, 17.0, 18.0)
    assert motor_channels(x, rotors, 6).tolist() == [100.0] * rotors + shown
