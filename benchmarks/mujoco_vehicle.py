# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The land-air vehicle in MuJoCo: the same bodies, joints and height field as ours, RK4 of 1 ms.

A body on four struts (slides with springs and dampers), steered front wheels, wheels that spin,
rotors that spin and push; all of them, and the body's box, can touch the ground. Tyres are MuJoCo's
own contacts of cylinders, about as stiff as ours, and the air does not brake: what is compared is
rolling and flying straight on.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np
from mujoco import rollout

from rfly_amphibious import ModelState, VehicleParameters
from rfly_amphibious.vehicle import state_layout as at
from rfly_terrain.height_map.height_map import HeightMap

CARRIER_SHARE = 0.2
"""Share of the unsprung mass that does not spin; MuJoCo needs one for each moving body."""
WHEEL_WIDTH = 0.06
GRAVITY = 9.80665

Numbers = np.ndarray[Any, np.dtype[np.float64]]


def without_air_or_rolling_resistance(params: VehicleParameters) -> VehicleParameters:
    """Return the parameters without the parts for which MuJoCo has no counterpart."""
    return params.replace(
        linear_drag=(0.0,) * 3,
        drag_area=(0.0,) * 3,
        rotational_drag=(0.0,) * 3,
        rotor_drag_coefficient=0.0,
        zero_thrust_advance_ratio=1e9,
        rolling_resistance=0.0,
    )


class MujocoVehicle:
    """One vehicle over one map in MuJoCo."""

    def __init__(self, params: VehicleParameters, terrain: HeightMap) -> None:
        self._params = params
        self._model = mujoco.MjModel.from_xml_string(_mjcf(params, terrain))
        heights = np.asarray(terrain.heights, float)
        low = float(heights.min())
        high = float(heights.max())

        # rows along y there
        self._model.hfield_data[:] = ((heights - low) / (high - low)).T.ravel()
        self._data = mujoco.MjData(self._model)
        self._rollout: rollout.Rollout | None = None

    def start(self, begin: ModelState) -> None:
        """Set the state from one of ours."""
        model = self._model
        data = self._data
        x = begin.x

        # the body
        mujoco.mj_resetData(model, data)
        data.qpos[:3] = x[:3]
        data.qvel[:3] = x[3:6]
        data.qpos[3:7] = x[at.QUATERNION : at.QUATERNION + 4]
        data.qvel[3:6] = x[at.RATES : at.RATES + 3]

        # struts and wheels
        for i, wheel in enumerate(at.WHEELS[: at.OUTER_WHEELS]):
            data.joint(f"strut_{wheel}").qpos[0] = x[at.STRUT + i]
            data.joint(f"wheel_{wheel}").qvel[0] = x[at.WHEEL_SPEED + i] - x[at.RATES + 1]

        # rotors
        for j, spin in enumerate(self._params.rotor_spin):
            data.joint(f"rotor_{j}").qvel[0] = spin * x[at.ROTOR_SPEED + j]
            data.actuator(f"thrust_{j}").ctrl[0] = (
                self._params.thrust_coefficient * x[at.ROTOR_SPEED + j] ** 2
            )

        mujoco.mj_forward(model, data)

    def run(self, steps: int) -> Numbers:
        """Return the position, m, after steps with nothing else commanded."""
        mujoco.mj_step(self._model, self._data, nstep=steps)
        return np.array(self._data.qpos[:3])

    def states(self, begins: Sequence[ModelState]) -> Numbers:
        """Return states of ours as MuJoCo's, (n, values), for `roll_out`."""
        kind = mujoco.mjtState.mjSTATE_FULLPHYSICS
        states = np.empty((len(begins), mujoco.mj_stateSize(self._model, kind)))
        for state, begin in zip(states, begins, strict=True):
            self.start(begin)
            mujoco.mj_getState(self._model, self._data, state, kind)
        return states

    def roll_out(self, states: Numbers, steps: int, threads: int) -> Numbers:
        """Return the positions (n, 3), m, after steps of all vehicles, by `mujoco.rollout`.

        All have the controls of the last `start`.
        """
        if self._rollout is None:
            self._rollout = rollout.Rollout(nthread=threads)
            self._copies = [copy.copy(self._data) for _ in range(threads)]
            self._room = np.empty((len(states), steps, states.shape[1]))
        control = self._data.ctrl[None, None].repeat(steps, axis=1)
        self._rollout.rollout(
            self._model, self._copies, states, control, nstep=steps, state=self._room
        )
        return self._room[:, -1, 1:4]  # the time comes first

    @property
    def bodies(self) -> int:
        """Number of bodies without the world."""
        return int(self._model.nbody) - 1


def _mjcf(p: VehicleParameters, terrain: HeightMap) -> str:
    """Return the vehicle and the map as a model of MuJoCo."""
    heights = np.asarray(terrain.heights, float)
    rows, columns = heights.shape
    low = float(heights.min())
    high = float(heights.max())
    x_min, x_max, y_min, y_max = terrain.bounds

    # masses of wheels and springs
    carrier = CARRIER_SHARE * p.mass_unsprung
    wheel = (1.0 - CARRIER_SHARE) * p.mass_unsprung
    small = 0.51 * p.wheel_inertia
    xx, yy, zz, xy, xz, yz = p.inertia
    springs = (p.front_spring, p.front_spring, p.rear_spring, p.rear_spring)
    damping = 0.5 * (p.bump_damping + p.rebound_damping)
    parts = []

    # struts and wheels
    for i, name in enumerate(at.WHEELS[: at.OUTER_WHEELS]):
        preload = p.spring_load[i] / springs[i]
        steer = f"""<joint name="steer_{name}" type="hinge" axis="0 0 1"
          stiffness="{1e4 * small}" damping="{140.0 * small}"/>"""
        parts.append(
            f"""<body name="strut_{name}" pos="{_numbers(p.hub_position[i])}">
              <inertial pos="0 0 0" mass="{carrier}" diaginertia="{small} {small} {small}"/>
              <joint name="strut_{name}" type="slide" axis="0 0 1" limited="true"
                range="{p.rebound_stop} {p.bump_stop}"
                stiffness="{springs[i]}" damping="{damping}" springref="{-preload}"/>
              {steer if i < 2 else ""}
              <body name="wheel_{name}">
                <inertial pos="0 0 0" mass="{wheel}"
                  diaginertia="{small} {p.wheel_inertia} {small}"/>
                <joint name="wheel_{name}" type="hinge" axis="0 1 0"/>
                <geom type="cylinder" size="{p.wheel_radius} {0.5 * WHEEL_WIDTH}"
                  euler="1.5707963267948966 0 0" friction="{p.friction_x} 0.001 0.0001"/>
              </body></body>"""
        )

    # rotors
    motors = []
    for j, place in enumerate(p.rotor_position):
        parts.append(
            f"""<body name="rotor_{j}" pos="{_numbers(place)}">
              <inertial pos="0 0 0" mass="0.01"
                diaginertia="{p.rotor_inertia} {p.rotor_inertia} {p.rotor_inertia}"/>
              <joint name="rotor_{j}" type="hinge" axis="0 0 1"/>
              <geom type="sphere" size="0.01"/></body>
              <site name="push_{j}" pos="{_numbers(place)}"/>"""
        )
        motors.append(f'<general name="thrust_{j}" site="push_{j}" gear="0 0 1 0 0 0"/>')

    sprung = p.mass_sprung - 0.01 * p.rotors
    return f"""<mujoco>
      <compiler angle="radian" autolimits="false"/>
      <option timestep="0.001" integrator="RK4" gravity="0 0 -{GRAVITY}" cone="elliptic"/>
      <default><geom solref="-{_contact(p)[0]} -{_contact(p)[1]}" solimp="0.99 0.99 0.001 0.5 2"
        contype="0" conaffinity="1"/></default>
      <asset><hfield name="ground" nrow="{columns}" ncol="{rows}"
        size="{0.5 * (x_max - x_min)} {0.5 * (y_max - y_min)} {high - low} 1"/></asset>
      <worldbody>
        <geom type="hfield" hfield="ground" contype="1" conaffinity="0"
          pos="{0.5 * (x_min + x_max)} {0.5 * (y_min + y_max)} {low}"/>
        <body name="body"><freejoint/>
          <inertial pos="0 0 0" mass="{sprung}" fullinertia="{xx} {yy} {zz} {xy} {xz} {yz}"/>
          <geom type="box" size="{_numbers(0.5 * side for side in p.body_box)}"/>
          {"".join(parts)}
        </body>
      </worldbody>
      <actuator>{"".join(motors)}</actuator>
    </mujoco>"""


def _contact(p: VehicleParameters) -> tuple[float, float]:
    """Return stiffness and damping of an acceleration.

    They are those of the tyre over the mass that rests on a wheel.
    """
    mass = 0.25 * p.mass
    return p.tyre_stiffness / mass, 2.0 * math.sqrt(p.tyre_stiffness / mass) * 0.2


def _numbers(values: Any) -> str:
    """Return numbers as text."""
    return " ".join(f"{float(value):.12g}" for value in values)
