# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Files of vehicle classes: the shipped one, what is refused, and energies by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rfly_common.errors import ConfigError
from rfly_terrain.costmap.traversability import TraversabilityLimits
from rfly_terrain.planning.vehicle_classes import (
    Driving,
    Flying,
    load_vehicle_classes,
    parse_vehicle_classes,
    vehicle_class,
)

CART = """
version: 1
classes:
  - {name: cart, kind: ground, mass: 100, radius: 1,
     drive: {speed: 2, turning_radius: 3, max_slope_deg: 15}}
  - name: kite
    kind: fixed_wing
    mass: 2
    radius: 0.5
    fly: {min_height: 20, speed: 10, climb_rate: 2, sink_rate: 3, power: 50}
"""


def test_the_shipped_classes():
    classes = load_vehicle_classes()
    assert {c.kind for c in classes.values()} == {"ground", "multirotor", "fixed_wing", "land_air"}
    for c in classes.values():
        assert (c.drive is not None) == (c.kind in ("ground", "land_air"))
        assert (c.fly is not None) == (c.kind != "ground")
        if c.drive is not None:
            assert c.drive.limits.vehicle_radius == c.radius
    assert vehicle_class(classes, "").name == next(iter(classes))


def test_a_file_of_ones_own(tmp_path):
    (tmp_path / "own.yaml").write_text(CART, encoding="utf-8")
    cart, kite = load_vehicle_classes(tmp_path / "own.yaml").values()
    assert cart.drive == Driving(2, 3, TraversabilityLimits(15, vehicle_radius=1.0))
    assert kite.fly == Flying(20, 10, 2, 3, 50)
    assert kite.fly.steepest == (0.2, 0.3)
    with pytest.raises(ConfigError, match=r"vehicle class 'bike': there are cart, kite"):
        vehicle_class({"cart": cart, "kite": kite}, "bike")
    with pytest.raises(ConfigError, match="No such file"):
        load_vehicle_classes(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("version: 1", "version: 2", r"own:2: version: 2, allowed: 1"),
        (
            "turning_radius: 3",
            "turning_radius: 0",
            r"own:5: classes\[0\].drive.turning_radius: 0, allowed: 1e-06",
        ),
        ("turning_radius: 3", "turning_radius: .nan", "is not a finite number"),
        ("turning_radius: 3, ", "", r"the key turning_radius is missing"),
        ("speed: 2,", "speed: 2, sped: 2,", r"did you mean speed"),
        ("name: kite", "name: cart", r"own:6: classes\[1\].name: there is a class 'cart' already"),
        ("kind: fixed_wing", "kind: multirotor", r"power: unknown key; did you mean hover_power"),
        ("kind: fixed_wing", "kind: plane", "allowed: ground, multirotor, fixed_wing, land_air"),
        ("kind: ground", "kind: fixed_wing", r"classes\[0\]: the key fly is missing"),
        (
            "power: 50",
            "power: 50, hover_power: 60",
            r"fly.hover_power: a fixed_wing vehicle has no such key",
        ),
        (
            "radius: 0.5\n",
            "radius: 0.5\n    drive: {speed: 1, turning_radius: 1}\n",
            "drive: a fixed_wing vehicle has no",
        ),
    ],
)
def test_what_is_refused(old, new, message):
    assert old in CART
    with pytest.raises(ConfigError, match=message):
        parse_vehicle_classes(CART.replace(old, new, 1).encode(), "own")


def test_energy_of_driving_by_hand():
    """The energy is 9.80665·100·(0.05·200 + 10)/0.8 J.

    100 kg, μ 0.05, efficiency 0.8, 200 m over ground that rise by 10 m.
    """
    driving = Driving(2.0, 3.0, TraversabilityLimits(), rolling_resistance=0.05, efficiency=0.8)
    assert driving.energy(100.0, 200.0, 10.0) == pytest.approx(980.665 * 20 / 0.8)
    assert driving.energy(100.0, 200.0, -4.0) == pytest.approx(980.665 * 6 / 0.8)
    assert driving.energy(100.0, 200.0, -50.0) == 0.0  # it rolls; nothing is gained back
    # the work against the force m g (μ cos θ + sin θ) along the slope, θ 20°, 30 m along it
    angle = math.radians(20)
    along = 100 * 9.80665 * (0.05 * math.cos(angle) + math.sin(angle)) * 30
    assert driving.energy(100.0, 30 * math.cos(angle), 30 * math.sin(angle)) == pytest.approx(
        along / 0.8
    )


def test_energy_and_time_of_flying_by_hand():
    flying = Flying(10.0, 10.0, 2.0, 4.0, 100.0, 150.0, efficiency=0.5)
    assert flying.duration([50, 50, 50, 0, 0], [0, 20, -40, 6, -6]) == pytest.approx(
        [5, 10, 10, 3, 1.5]
    )

    # energy; straight up and down at the hover power
    lift = 2 * 9.80665 / 0.5
    expected = [500, 1000 + 20 * lift, 1000, 450 + 6 * lift, 225]
    assert flying.energy(
        2.0, np.array([50, 50, 50, 0, 0]), np.array([0, 20, -40, 6, -6])
    ) == pytest.approx(expected)


def test_the_class_of_the_howto_is_one():
    import re
    from pathlib import Path

    page = Path(__file__).parents[3] / "docs" / "howto" / "plan-a-path.md"
    text = re.findall(
        r"^```yaml\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )[0]
    assert parse_vehicle_classes(text.encode(), page.name)["mule"].fly.hover_power == 2900
