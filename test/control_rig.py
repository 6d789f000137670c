# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A simulated vehicle under its control computers, without ROS: samples in, commands out."""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

import numpy as np

from rfly_amphibious.dynamics.model import AmphibiousModel
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.simulation.commands import Mode
from rfly_amphibious.simulation.simulation import Simulation
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.chassis_controller import ChassisController
from rfly_autonomy.control.flight_controller import FlightController
from rfly_autonomy.control.pilot import abort_pilot
from rfly_autonomy.control.speed_controller import linear_turn
from rfly_autonomy.estimation.estimate import Estimate
from rfly_common.frames import rotation_matrix
from rfly_terrain.height_map.height_map import HeightMap


def slope(degrees):
    """Return ground that rises along x."""
    x = np.array((-200.0, 200.0))
    heights = np.tan(np.radians(degrees)) * np.repeat(x[:, None], 2, axis=1)
    return HeightMap(heights, origin_x=-200.0, origin_y=-200.0, step_x=400.0, step_y=400.0)


def understeer_gradient(params):
    """Return the understeer gradient K_us, rad s²/m. Eq. 10.11, 10.15.

    It is the steering for each m/s² to the side, in addition to that of the geometry.
    """
    p = params
    if p.middle_axle is not None and p.steered != "none":
        lever, aside = linear_turn(p)
        return p.wheelbase / lever * aside
    front, rear = p.axle_stiffness.tolist()[:2]
    to_front = p.front_axle - p.center_x
    to_rear = p.rear_axle + p.center_x
    return p.mass / p.wheelbase * (to_rear / front - to_front / rear)


class Motion(NamedTuple):
    """Motion of a tick as numbers, or of a run as arrays of all its ticks."""

    time: float | np.ndarray
    """Simulated time, s."""
    x: float | np.ndarray
    y: float | np.ndarray
    z: float | np.ndarray
    """Position, m."""
    vx: float | np.ndarray
    vy: float | np.ndarray
    vz: float | np.ndarray
    """Velocity in world axes, m/s."""
    yaw: float | np.ndarray
    pitch: float | np.ndarray
    """Attitude, rad."""
    roll_rate: float | np.ndarray
    pitch_rate: float | np.ndarray
    yaw_rate: float | np.ndarray
    """Body rates, rad/s."""

    @property
    def elapsed(self):
        """Time since the first tick of the run, s."""
        return self.time - self.time[0]


class Rig:
    """Vehicle with its control computers.

    `run` goes on tick by tick and keeps the motion of every tick.
    """

    def __init__(self, params="scale", terrain=None, *, noise=False, airborne=None, rate=125.0):
        """Begin at rest; `rate`: of the IMU and the ticks, Hz.

        The shipped IMU has 250 Hz; 125 are enough in flight, 100 on the ground.
        """
        if isinstance(params, str):
            params = VehicleParameters.load(params)
        self.params = params

        model = AmphibiousModel(params, terrain)
        begin = model.flying((0.0, 0.0, airborne)) if airborne is not None else model.standing()
        sensors = SensorParameters.load("full" if params.name == "full" else "scale")
        # without those that only an estimator needs
        sensors = sensors.replace(
            imu=dataclasses.replace(sensors.imu, rate=rate),
            **dict.fromkeys(("gps", "magnetometer", "barometer", "wind", "ground_truth")),
        )

        self.tick_s = 1.0 / rate
        self.sim = Simulation(model, sensors, begin, noise=noise, fail_safe=abort_pilot)
        self.flight = FlightController(params, sensors)
        self.chassis = ChassisController(params)

        self.estimated = True
        self.modes = []
        self.rows = []

        if airborne is not None:
            self.flight.logic.mode = Mode.FLIGHT

    def estimate(self, samples):
        """Return what the controllers know of the motion: the truth."""
        now = self.sim.state
        return Estimate(
            now.time,
            *(np.array(a) for a in (now.position, now.orientation, now.velocity, now.rates)),
        )

    def tick(self):
        samples = self.sim.tick()
        now = self.sim.state
        estimate = self.estimate(samples) if self.estimated else None

        self.flight.sense(samples)
        self.chassis.sense(samples)
        self.rotors = self.flight.step(estimate, self.tick_s)
        self.sim.command_rotors(self.rotors)
        self.wheels = self.chassis.step(estimate, self.flight.mode, self.tick_s)
        self.sim.command_wheels(self.wheels)

        # keep what happened
        if not self.modes or self.modes[-1] is not self.flight.mode:
            self.modes.append(self.flight.mode)
        rotation = rotation_matrix(now.orientation)
        yaw = math.atan2(rotation[1, 0], rotation[0, 0])
        pitch = math.asin(-rotation[2, 0])
        self.rows.append(Motion(now.time, *now.position, *now.velocity, yaw, pitch, *now.rates))

    def run(self, duration, command=None, until=None):
        """Run until a condition comes true; return the motion of this run.

        `command(rig)` is called before each tick.
        """
        self.rows = []
        for _ in range(round(duration / self.tick_s)):
            if command is not None:
                command(self)
            self.tick()
            if until is not None and until(self):
                break
        else:
            assert until is None, (
                f"not within {duration} s, in {self.flight.mode}: {self.flight.reason}"
            )

        return Motion(*np.array(self.rows).T)

    @property
    def time(self):
        return self.sim.time


def hover():
    """Return a rig of `scale` that hovers 10 m up, without a command."""
    rig = Rig("scale", airborne=10.0)
    rig.flight.set_target((0.0, 0.0, 10.0), time=1e6)
    rig.run(1.0)
    rig.flight._setpoint_time = -math.inf
    return rig
