# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Modes of the suspension against closed forms and the full model's motion.

docs/model, section 16.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import curve_fit

from rfly_amphibious.dynamics.model import AmphibiousModel, Controls, ModelState
from rfly_amphibious.dynamics.suspension_modes import draw_modes, suspension_modes
from rfly_amphibious.vehicle import state_layout
from rfly_amphibious.vehicle.parameters import VehicleParameters


def found(params: VehicleParameters):
    return {mode.name: mode for mode in suspension_modes(params)}


@pytest.mark.parametrize(
    ("name", "body", "hop", "heave_damping"),
    [
        ("full", (1.3558, 1.4436, 1.4206), (12.517, 12.542, 12.713, 12.939), 0.3494),
        ("scale", (2.3048, 2.4955, 2.6940), (16.881, 16.901, 16.906, 16.911), 0.3057),
    ],
)
def test_frequencies_are_those_of_v03(name, body, hop, heave_damping):
    modes = found(VehicleParameters.load(name))
    assert [modes[key].frequency for key in ("heave", "pitch", "roll")] == pytest.approx(
        body, rel=1e-4
    )
    assert sorted(m.frequency for m in modes.values())[3:] == pytest.approx(hop, rel=1e-4)
    assert modes["heave"].damping_ratio == pytest.approx(heave_damping, rel=2e-3)


def test_a_symmetric_vehicle_heaves_as_a_quarter_car():
    """Equal axles: heave and hop of all wheels are the two roots of a quarter of the body on one
    wheel, damped.
    """
    p = VehicleParameters.load("scale").replace(rear_axle=0.32, rebound_damping=60.0)
    body = p.mass_sprung / 4.0
    wheel = p.mass_unsprung
    k = p.front_spring
    c = 60.0
    stiffness = np.array(((k, -k), (-k, k + p.tyre_stiffness)))
    damping = np.array(((c, -c), (-c, c + p.tyre_damping)))
    mass = np.diag((body, wheel))
    # det(λ² M + λ C + K) as a polynomial
    entry = [[(mass[i, j], damping[i, j], stiffness[i, j]) for j in (0, 1)] for i in (0, 1)]
    roots = np.roots(
        np.polysub(np.polymul(entry[0][0], entry[1][1]), np.polymul(entry[0][1], entry[1][0]))
    )
    slow, quick = sorted({round(abs(root), 9): root for root in roots}.values(), key=abs)
    modes = found(p)
    for mode, root in ((modes["heave"], slow), (modes["hop"], quick)):
        expected = abs(root.imag) / (2 * np.pi)
        assert mode.damped_frequency == pytest.approx(expected, rel=1e-9)
        assert mode.damping_ratio == pytest.approx(-root.real / abs(root), rel=1e-9)
    assert modes["heave"].shape[1:3] == pytest.approx((0.0, 0.0), abs=1e-9)
    expected = np.full(4, modes["heave"].shape[3])
    assert modes["heave"].shape[3:] == pytest.approx(expected)


def test_a_symmetric_vehicle_on_six_wheels_heaves_on_a_sixth_of_its_body():
    """An undamped heave mode has the two roots of a sixth of the body, a wheel, a spring and a
    tyre.

    There are nine modes in all.
    """
    p = VehicleParameters.load("scale_six").replace(front_axle=0.4, rear_axle=0.4, middle_axle=0.0)
    body = 28.8 / 6.0
    wheel = 1.2
    k = 1150.0
    tyre = 12000.0
    # m_b m_w λ⁴ + (m_b (k + k_t) + m_w k) λ² + k k_t = 0
    squares = np.roots((body * wheel, -(body * (k + tyre) + wheel * k), k * tyre))
    modes = suspension_modes(p)
    assert len(modes) == 9
    heave = next(mode for mode in modes if mode.name == "heave")
    hop = next(mode for mode in modes if mode.name == "hop")
    expected = sorted(np.sqrt(squares) / (2 * np.pi))
    assert sorted((heave.frequency, hop.frequency)) == pytest.approx(expected, rel=1e-9)
    expected = np.full(6, heave.shape[3])
    assert heave.shape[3:] == pytest.approx(expected)
    assert all(mode.damping_ratio > 0.1 for mode in modes)


def test_overdamped_struts_creep():
    p = VehicleParameters.load("scale")
    heave = found(p.replace(bump_damping=300.0, rebound_damping=300.0))["heave"]
    assert heave.damped_frequency == 0.0
    assert heave.damping_ratio > 1.0


@pytest.mark.parametrize("kind", ["heave", "roll", "pitch"])
def test_the_full_model_rings_down_so(kind):
    """Let go a few millimetres off, on a ground without friction, with dampers alike both ways."""
    p = VehicleParameters.load("scale").replace(
        bump_damping=25.0,
        rebound_damping=25.0,
        friction_x=1e-6,
        friction_y=1e-6,
        low_speed_damping=0.0,
    )
    mode = found(p)[kind]
    model = AmphibiousModel(p)
    state = np.array(model.standing().x)
    heave, roll, pitch = 0.004 * mode.shape[:3]
    state[2] += heave
    state[state_layout.QUATERNION + 1 : state_layout.QUATERNION + 3] = 0.5 * roll, 0.5 * pitch
    x = p.hub_position[:, 0]
    y = p.hub_position[:, 1]
    state[state_layout.STRUT : state_layout.STRUT + 4] = 0.004 * mode.shape[3:] - (
        heave + y * roll - x * pitch
    )
    run = model.run(
        ModelState(state, np.zeros(state_layout.MEMORY)), Controls(), 2.0, sample_period=0.004
    )
    w, i, j, k = run.x[:, state_layout.QUATERNION : state_layout.QUATERNION + 4].T
    seen = {
        "heave": run.x[:, 2] - p.origin_height,
        "roll": 2 * (w * i + j * k),
        "pitch": 2 * (w * j - k * i),
    }[kind]
    late = run.time > 0.1

    def ring(t, size, phase, decay, turn, rest):
        return size * np.exp(-decay * t) * np.cos(turn * t + phase) + rest

    guess = (np.abs(seen).max(), 0.0, 1.0, 2 * np.pi * mode.frequency, 0.0)
    (_, _, decay, turn, _), _ = curve_fit(ring, run.time[late], seen[late], guess)
    assert turn / (2 * np.pi) == pytest.approx(mode.damped_frequency, rel=0.03)
    assert decay / np.hypot(decay, turn) == pytest.approx(mode.damping_ratio, rel=0.05)


def test_the_picture_is_drawn(tmp_path):
    params = VehicleParameters.load("full")
    draw_modes(params, suspension_modes(params), tmp_path / "modes.png")
    assert (tmp_path / "modes.png").read_bytes()[:4] == b"\x89PNG"
